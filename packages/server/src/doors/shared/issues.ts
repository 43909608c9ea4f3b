import type { core as zodCore } from "zod";

/** What is wrong, and where. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The deepest issue of the union branches that got furthest says most. */
export function mostTelling(issues: readonly zodCore.$ZodIssue[], base: readonly PropertyKey[]): Issue {
  const [first] = issues;
  if (first === undefined) return { path: base, message: "not as expected" };
  const path = [...base, ...first.path];
  if (first.code !== "invalid_union" || first.errors.length === 0) return { path, message: sentenceOf(first.message) };
  const branches = first.errors.map((branch) => mostTelling(branch, path));
  const depth = Math.max(...branches.map((branch) => branch.path.length));
  const deepest = branches.filter((branch) => branch.path.length === depth);
  const messages = [...new Set(deepest.map((branch) => branch.message))];
  if (depth > path.length || first.message === noMessage) {
    return { path: deepest[0]?.path ?? path, message: messages.join(", or ") };
  }
  // The schema's own sentence says more than a list of what its branches expected.
  return { path, message: messages.join() === missing ? `${missing}, it ${first.message}` : first.message };
}

const noMessage = "Invalid input";
const missing = "it is missing";

function sentenceOf(message: string): string {
  return /, received undefined$/.test(message) ? missing : message.replace(/^Invalid input: /, "");
}
