/** Whether a model's name fits a pattern in which `*` stands for any text. */
export function matchesPattern(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(name);
}
