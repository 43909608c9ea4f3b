/** One server-sent event of an answer, its data parsed. */
export interface ReadEvent {
  readonly name: string | undefined;
  readonly data: string;
  /** Of any shape; undefined for `[DONE]`. */
  readonly json: ReturnType<typeof JSON.parse>;
}

/** Every event of a stream, in order; comments are left out. */
export function readEvents(text: string): ReadEvent[] {
  const events: ReadEvent[] = [];
  for (const block of text.split("\n\n")) {
    const lines = block.split("\n");
    const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
    if (data.length === 0) continue;
    const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
    const joined = data.join("\n");
    events.push({ name, data: joined, json: joined.startsWith("{") ? JSON.parse(joined) : undefined });
  }
  return events;
}
