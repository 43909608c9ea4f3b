/** Members that may be missing or null become members that are simply absent. */
export type Compact<T> = { [K in keyof T as null extends T[K] ? never : undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : undefined extends T[K] ? K : never]?: NonNullable<T[K]>;
};

/** The object without members that are undefined or null. */
export function compact<T extends object>(value: T): Compact<T> {
  const kept: Record<string, unknown> = {};
  for (const name in value) {
    const member = value[name];
    if (member !== undefined && member !== null) kept[name] = member;
  }
  return kept as Compact<T>;
}
