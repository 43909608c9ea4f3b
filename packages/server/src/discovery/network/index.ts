/** This service and the others of the local network: announcing it, finding them. */
export { type Announcement, announceService } from "./announce.ts";
export { type Neighbours, watchNeighbours } from "./neighbourhood.ts";
