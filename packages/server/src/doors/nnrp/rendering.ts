import type { Response } from "@plenum/core";
import type { ConvertedRequest } from "../shared/openai/converted.ts";
import type { EventSource } from "../shared/openai/event-source.ts";

/** How one API of OpenAI's shows a response. */
export interface Rendering {
  readonly counts: "choices" | "output";
  /** The API's spelling of a field that the core names. */
  readonly param: ConvertedRequest["param"];
  /** Its own chunks. */
  toSource(): EventSource;
  toBody(response: Response): object;
}
