import { matchesPattern } from "@plenum/core";

/** Says which of a server's models are offered. @param patterns names, or patterns with `*`; absent: every model */
export function offered(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return () => true;
  // Ollama lists a name without a tag as `name:latest`.
  const forms = patterns.flatMap((pattern) => [pattern, `${pattern}:latest`]);
  return (name) => forms.some((form) => matchesPattern(form, name));
}
