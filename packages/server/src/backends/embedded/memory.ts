import { freemem, totalmem } from "node:os";

/** Part of the memory that models take when nothing is configured. */
const defaultShare = 0.8;

/** Bytes that this process and its children can still take; a container's limit counts. */
export function availableBytes(): number {
  return process.availableMemory?.() ?? freemem();
}

/** Bytes of the machine, or of the container when that has fewer. */
function totalBytes(): number {
  const machine = totalmem();
  // Without a limit it is 0, or a number beyond every machine.
  const container = process.constrainedMemory?.() ?? 0;
  return container > 0 && container < machine ? container : machine;
}

/** @param budget bytes, or a share of the memory: at most 1. Absent: four fifths of it */
export function budgetBytes(budget: number = defaultShare): number {
  return budget <= 1 ? Math.floor(totalBytes() * budget) : budget;
}
