import { isCollection, isMap, isNode, isScalar, LineCounter, type Node, type ParsedNode, parseDocument } from "yaml";
import { ConfigError } from "./config-error.ts";

export type ConfigPath = readonly (string | number)[];

/** A parsed file that knows where each value stands. */
export interface ConfigDocument {
  /** Empty values are left out: `auth:` alone is the same as no `auth`. */
  readonly data: Readonly<Record<string, unknown>>;
  /** `file:line:column` of the value at a path, or of the nearest thing around it. */
  placeOfValue(path: ConfigPath): string;
  /** `file:line:column` of a key of the mapping at a path. */
  placeOfKey(path: ConfigPath, key: string): string;
}

/** A mapping as parsed, before any check of what it holds. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutNulls(member)]));
}

/** First sentence of a YAML error, without the excerpt that the parser appends. */
function firstLine(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/ at line \d+, column \d+:?$/, "");
}

/**
 * Parses YAML 1.2.
 * @param file name that errors show.
 * @throws ConfigError when the text is not YAML, has a key twice, or is not a mapping.
 */
export function parseConfigDocument(text: string, file: string): ConfigDocument {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, version: "1.2" });
  const place = (offset: number): string => {
    const { line, col } = lineCounter.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const mistakes = [...document.errors, ...document.warnings];
  if (mistakes.length > 0) {
    throw new ConfigError(mistakes.map((mistake) => `${place(mistake.pos[0])}  ${firstLine(mistake.message)}`));
  }
  const root = document.contents;
  if (root !== null && !isMap(root) && !(isScalar(root) && root.value === null)) {
    throw new ConfigError([`${place(offsetOf(root))}  expected a mapping of options, such as "port: 7411"`]);
  }
  const data = withoutNulls(document.toJS() ?? {});
  return {
    data: isRecord(data) ? data : {},
    placeOfValue: (path) => place(offsetOf(nearestNode(root, path))),
    placeOfKey: (path, key) => {
      const parent = nearestNode(root, path);
      const pair = isMap(parent)
        ? parent.items.find((item) => isScalar(item.key) && item.key.value === key)
        : undefined;
      return place(offsetOf(isNode(pair?.key) ? pair.key : parent));
    },
  };
}

function offsetOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

function nearestNode(root: ParsedNode | null, path: ConfigPath): Node | null {
  let node: Node | null = root;
  for (const key of path) {
    const child: unknown = isCollection(node) ? node.get(key, true) : undefined;
    if (!isNode(child)) break;
    node = child;
  }
  return node;
}
