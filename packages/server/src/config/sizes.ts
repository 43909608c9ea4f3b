const unitBytes = {
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
} as const;

/** Form of a written share or size of memory: `80%`, `12GiB`, `1.5GB`. */
export const sizeForm: RegExp = /^(?:(?:100|[1-9]\d?)%|\d{1,6}(?:\.\d{1,3})?(?:KB|MB|GB|TB|KiB|MiB|GiB|TiB))$/;

/** Bytes, or a share of at most 1 for a percentage. @throws RangeError when the text has not the form of `sizeForm`. */
export function shareOrBytes(size: number | string): number {
  if (typeof size === "number") return size;
  if (!sizeForm.test(size)) throw new RangeError(`Not a size: ${size}`);
  const amount = Number.parseFloat(size);
  const unit = size.replace(/^[\d.]+/, "");
  if (unit === "%") return amount / 100;
  const bytes = new Map<string, number>(Object.entries(unitBytes)).get(unit) ?? 1;
  // What is below a byte would count as a share.
  return Math.max(2, Math.round(amount * bytes));
}
