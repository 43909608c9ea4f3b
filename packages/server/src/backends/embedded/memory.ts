import { freemem } from "node:os";

/** Bytes that this process and its children can still take; a container's limit counts. */
export function availableBytes(): number {
  return process.availableMemory?.() ?? freemem();
}
