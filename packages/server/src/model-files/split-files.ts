/** The name of one part of a split model: `name-00001-of-00003.gguf`. */
const partForm = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
/** More parts than any model has. */
const mostParts = 1000;

/** Names of all parts, in order, of the model that a part belongs to; the name alone when it is not split. */
export function partNames(name: string): readonly string[] {
  const part = partForm.exec(name);
  if (part === null) return [name];
  const [, stem = "", , count = ""] = part;
  const parts = Number(count);
  if (parts < 1 || parts > mostParts) return [name];
  const ending = name.slice(-5);
  return Array.from(
    { length: parts },
    (_, index) => `${stem}-${String(index + 1).padStart(5, "0")}-of-${count}${ending}`,
  );
}
