import { z } from "zod";
import { mostTelling } from "./issues.ts";

interface ListOptions {
  /** Fewest members. @default 0 */
  readonly least?: number;
  /** What is wrong when there are fewer. */
  readonly message?: string;
}

/**
 * A list that is checked up to its first wrong member. `z.array` goes on and makes an issue for each, which for a large
 * body of nonsense takes seconds and gigabytes.
 */
export function list<T extends z.ZodType>(member: T, options: ListOptions = {}) {
  const { least = 0, message = "must not be empty" } = options;
  const any = z.array(z.unknown()).min(least, message);
  return any.transform((members, context): z.output<T>[] => {
    const checked: z.output<T>[] = [];
    for (const [index, value] of members.entries()) {
      const result = member.safeParse(value);
      if (!result.success) {
        const { path, message } = mostTelling(result.error.issues, [index]);
        context.issues.push({ code: "custom", message, path: [...path], input: value });
        return z.NEVER;
      }
      checked.push(result.data);
    }
    return checked;
  });
}

/** As `list`, for the members of an object with names of the client's own. */
export function mapping<T extends z.ZodType>(member: T) {
  return z.record(z.string(), z.unknown()).transform((members, context) => {
    const checked: Record<string, z.output<T>> = {};
    for (const [name, value] of Object.entries(members)) {
      const result = member.safeParse(value);
      if (!result.success) {
        const { path, message } = mostTelling(result.error.issues, [name]);
        context.issues.push({ code: "custom", message, path: [...path], input: value });
        return z.NEVER;
      }
      checked[name] = result.data;
    }
    return checked;
  });
}

/** A list of whole numbers from 0, which may be very long: no schema runs for each. */
export const tokenIds = z
  .array(z.unknown())
  .min(1, "must not be empty")
  .transform((members, context): number[] => {
    for (const [index, id] of members.entries()) {
      if (typeof id === "number" && Number.isInteger(id) && id >= 0) continue;
      const message = `expected int from 0, received ${typeof id}`;
      context.issues.push({ code: "custom", message, path: [index], input: id });
      return z.NEVER;
    }
    return members as number[];
  });
