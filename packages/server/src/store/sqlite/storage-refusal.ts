import type { Fault } from "./thread/protocol.ts";

/** A database that can't be used, in a sentence that says what to do. */
export class StorageRefusal extends Error {
  override readonly name = "StorageRefusal";
  readonly kind: Fault["kind"];

  constructor(file: string, { kind, message }: Fault) {
    super(sentenceOf(file, kind, message.replace(/\s+/g, " ")));
    this.kind = kind;
  }
}

function sentenceOf(file: string, kind: Fault["kind"], message: string): string {
  switch (kind) {
    case "in-use":
      return `The database ${file} is in use by another process; stop that one, or give this one another file (store.path) or home.`;
    case "full":
      return `The database ${file} can't be written: the disk is full, a limit is reached, or the disk fails (${message}). It is tried again until there is room.`;
    case "corrupt":
      return `The database ${file} is damaged (${message}). Nothing was changed; stop the service and run: plenum store repair --file ${file}`;
    case "newer":
      return `The database ${file} was made by a newer version of Plenum (${message}); use that version, or another file (store.path).`;
    case "other":
      return `The database ${file} can't be used: ${message}.`;
  }
}
