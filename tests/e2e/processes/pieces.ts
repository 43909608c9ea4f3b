/** What the model of `durable.ts` answers to a prompt that ends with a number: as many pieces. */
export function piecesOf(prompt: string): readonly string[] {
  const count = Number(/(\d+)$/.exec(prompt)?.[1] ?? 0);
  return Array.from({ length: count }, (_none, index) => `${prompt} ${index}é `);
}
