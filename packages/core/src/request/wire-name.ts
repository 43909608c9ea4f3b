/** A field's name in the native interface's spelling: `topP` is `top_p`. */
export function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
