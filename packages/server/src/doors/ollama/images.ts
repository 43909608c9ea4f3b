import { OllamaRefusal } from "./refusal.ts";

/** First base64 characters of the formats that runtimes read. */
const signatures: readonly (readonly [start: string, mediaType: string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
  ["Qk", "image/bmp"],
];

/**
 * An image as Ollama's clients send it, base64 without a type, as a `data:` URL.
 * @throws OllamaRefusal in Go's words, with the place of the first wrong character.
 */
export function toDataUrl(image: string): string {
  const base64 = image.replace(/[\r\n]/g, "");
  const valid = /^[A-Za-z0-9+/]*={0,2}$/.test(base64) && base64.length % 4 === 0 && base64 !== "";
  if (!valid) {
    const place = base64.search(/[^A-Za-z0-9+/]/);
    throw new OllamaRefusal(400, `illegal base64 data at input byte ${place < 0 ? base64.length : place}`);
  }
  const known = signatures.find(([start]) => base64.startsWith(start));
  return `data:${known?.[1] ?? "application/octet-stream"};base64,${base64}`;
}
