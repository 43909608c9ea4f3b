/** Item id of a chat's tool call: its choice, and its number in that choice (wire description §12.3). */
export function toolCallItemId(choice: number, call: number): string {
  return `tool-call-${choice}-${call}`;
}

/** The choice that an item id names. @default 0, where the id is of another form */
export function choiceOfItemId(itemId: string): number {
  return Number(/^tool-call-(\d{1,6})-\d+$/.exec(itemId)?.[1] ?? 0);
}
