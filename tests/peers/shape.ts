/** Paths of all members of a JSON value with the types of their values; members of arrays are laid over each other. */
export function shapeOf(value: unknown, options: { readonly closed?: readonly string[] } = {}): Record<string, string> {
  const types = new Map<string, Set<string>>();
  collect(value, "", types, options.closed ?? []);
  return Object.fromEntries([...types].sort().map(([path, names]) => [path, [...names].sort().join(" | ")]));
}

function collect(value: unknown, path: string, types: Map<string, Set<string>>, closed: readonly string[]): void {
  const name = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  types.set(path, (types.get(path) ?? new Set()).add(name));
  if (typeof value !== "object" || value === null || closed.includes(path)) return;
  if (Array.isArray(value)) {
    for (const member of value) collect(member, `${path}[]`, types, closed);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    collect(member, path === "" ? key : `${path}.${key}`, types, closed);
  }
}

/** A member whose type differs; undefined where it is absent. */
export interface Difference {
  readonly path: string;
  readonly ours: string | undefined;
  readonly theirs: string | undefined;
}

/** What differs between two shapes. */
export function differences(
  ours: Readonly<Record<string, string>>,
  theirs: Readonly<Record<string, string>>,
): readonly Difference[] {
  const paths = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].sort();
  return paths
    .filter((path) => ours[path] !== theirs[path])
    .map((path) => ({ path, ours: ours[path], theirs: theirs[path] }));
}

/** A difference in words. */
export function toLine({ path, ours, theirs }: Difference): string {
  return `${path}: ours ${ours ?? "absent"}, theirs ${theirs ?? "absent"}`;
}
