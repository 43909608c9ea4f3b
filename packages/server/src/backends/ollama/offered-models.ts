/** Says which of a server's models are offered. @param patterns names, or patterns with `*`; absent: every model */
export function offered(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return () => true;
  const forms = patterns.map((pattern) => {
    const escaped = pattern.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    return new RegExp(`^${escaped.join(".*")}(:latest)?$`);
  });
  return (name) => forms.some((form) => form.test(name));
}
