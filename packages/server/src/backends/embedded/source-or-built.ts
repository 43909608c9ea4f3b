/**
 * A module that is named by its place and not imported: the source beside a source, the built one beside a built one.
 * @param path without its ending, relative to `base`
 */
export function sourceOrBuilt(path: string, base: string): URL {
  const isSource = new URL(base).pathname.endsWith(".ts");
  return new URL(`${path}${isSource ? ".ts" : ".js"}`, base);
}
