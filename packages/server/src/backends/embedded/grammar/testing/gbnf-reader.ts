/** For tests: reads GBNF text on its own, so that what the writer wrote is judged, not what it meant. */

export type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "set"; readonly isInverted: boolean; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: readonly Node[] }
  | { readonly kind: "choice"; readonly options: readonly Node[] }
  | { readonly kind: "repeat"; readonly part: Node; readonly min: number; readonly max: number };

export type Grammar = ReadonlyMap<string, Node>;

export function readGbnf(source: string): Grammar {
  const rules = new Map<string, Node>();
  for (const line of source.split("\n").filter((each) => each !== "")) {
    const [, name = "", body = ""] = /^([a-z0-9-]+) ::= (.*)$/s.exec(line) ?? [];
    if (name === "") throw new SyntaxError(`no rule: ${line.slice(0, 80)}`);
    rules.set(name, new Reader(body).whole());
  }
  return rules;
}

class Reader {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#characters = [...source];
  }

  whole(): Node {
    const result = this.#choice();
    if (this.#at < this.#characters.length) throw new SyntaxError(`rest: ${this.#characters.slice(this.#at).join("")}`);
    return result;
  }

  #choice(): Node {
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    return { kind: "choice", options };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    for (;;) {
      while (this.#take(" "));
      const next = this.#characters[this.#at];
      if (next === undefined || next === "|" || next === ")") return { kind: "sequence", parts };
      parts.push(this.#counted(this.#atom()));
    }
  }

  #counted(part: Node): Node {
    if (this.#take("*")) return { kind: "repeat", part, min: 0, max: Infinity };
    if (this.#take("+")) return { kind: "repeat", part, min: 1, max: Infinity };
    if (this.#take("?")) return { kind: "repeat", part, min: 0, max: 1 };
    if (!this.#take("{")) return part;
    let count = "";
    while (!this.#take("}")) count += this.#next();
    const [min = "", max] = count.split(",");
    return {
      kind: "repeat",
      part,
      min: Number(min),
      max: max === undefined ? Number(min) : max === "" ? Infinity : Number(max),
    };
  }

  #atom(): Node {
    if (this.#take("(")) {
      const inner = this.#choice();
      if (!this.#take(")")) throw new SyntaxError("open group");
      return inner;
    }
    if (this.#take('"')) {
      let text = "";
      while (!this.#take('"')) text += this.#character();
      return { kind: "text", text };
    }
    if (this.#take("[")) return this.#set();
    let name = "";
    while (/[a-z0-9-]/.test(this.#characters[this.#at] ?? "")) name += this.#next();
    if (name === "") throw new SyntaxError(`no atom: ${this.#characters.slice(this.#at, this.#at + 20).join("")}`);
    return { kind: "rule", name };
  }

  #set(): Node {
    const isInverted = this.#take("^");
    const ranges: [number, number][] = [];
    while (!this.#take("]")) {
      const from = this.#character().codePointAt(0) ?? 0;
      const to = this.#take("-") ? (this.#character().codePointAt(0) ?? 0) : from;
      ranges.push([from, to]);
    }
    return { kind: "set", isInverted, ranges };
  }

  #character(): string {
    const character = this.#next();
    if (character !== "\\") return character;
    const escaped = this.#next();
    const length = { x: 2, u: 4, U: 8 }[escaped];
    if (length !== undefined) {
      let hex = "";
      while (hex.length < length) hex += this.#next();
      return String.fromCodePoint(Number.parseInt(hex, 16));
    }
    const known = { n: "\n", r: "\r", t: "\t", "\\": "\\", '"': '"', "[": "[", "]": "]" }[escaped];
    if (known === undefined) throw new SyntaxError(`unknown escape ${escaped}`);
    return known;
  }

  #take(wanted: string): boolean {
    if (this.#characters[this.#at] !== wanted) return false;
    this.#at += 1;
    return true;
  }

  #next(): string {
    const character = this.#characters[this.#at];
    if (character === undefined) throw new SyntaxError("ends too early");
    this.#at += 1;
    return character;
  }
}

/** Whether the whole text is of the grammar. */
export function matches(grammar: Grammar, source: string): boolean {
  const text = [...source];
  const known = new Map<string, ReadonlySet<number>>();
  const ends = (node: Node, at: number): ReadonlySet<number> => {
    switch (node.kind) {
      case "text": {
        const wanted = [...node.text];
        return new Set(wanted.every((character, index) => text[at + index] === character) ? [at + wanted.length] : []);
      }
      case "set": {
        const codePoint = text[at]?.codePointAt(0);
        if (codePoint === undefined) return new Set();
        const isIn = node.ranges.some(([from, to]) => codePoint >= from && codePoint <= to);
        return new Set(isIn !== node.isInverted ? [at + 1] : []);
      }
      case "rule": {
        const key = `${node.name} ${at}`;
        const found = known.get(key) ?? ends(ruleOf(grammar, node.name), at);
        known.set(key, found);
        return found;
      }
      case "sequence": {
        let places: ReadonlySet<number> = new Set([at]);
        for (const part of node.parts) places = new Set([...places].flatMap((place) => [...ends(part, place)]));
        return places;
      }
      case "choice":
        return new Set(node.options.flatMap((option) => [...ends(option, at)]));
      case "repeat": {
        const found = new Set<number>(node.min === 0 ? [at] : []);
        let places: ReadonlySet<number> = new Set([at]);
        for (let count = 1; count <= node.max && places.size > 0; count += 1) {
          places = new Set([...places].flatMap((place) => [...ends(node.part, place)]));
          if (count >= node.min) {
            if ([...places].every((place) => found.has(place)) && count > node.min) break;
            for (const place of places) found.add(place);
          }
        }
        return found;
      }
    }
  };
  return ends({ kind: "rule", name: "root" }, 0).has(text.length);
}

/** A random text of the grammar. @param random 0 … 1 exclusive @param budget characters after which it takes short ways */
export function sample(grammar: Grammar, random: () => number, budget = 200): string {
  const cost = cheapest(grammar);
  let length = 0;
  const write = (node: Node): string => {
    switch (node.kind) {
      case "text":
        length += node.text.length;
        return node.text;
      case "set":
        length += 1;
        return String.fromCodePoint(pick(node, random));
      case "rule":
        return write(ruleOf(grammar, node.name));
      case "sequence":
        return node.parts.map(write).join("");
      case "choice": {
        const ways = length < budget ? node.options : [...node.options].sort((a, b) => cost(a) - cost(b)).slice(0, 1);
        const way = ways[Math.floor(random() * ways.length)];
        return way === undefined ? "" : write(way);
      }
      case "repeat": {
        const most = length < budget ? Math.min(node.max, node.min + 3) : node.min;
        const count =
          random() < 0.1 && Number.isFinite(node.max) && node.max < 120 && length < budget
            ? node.max
            : node.min + Math.floor(random() * (most - node.min + 1));
        let result = "";
        for (let index = 0; index < count; index += 1) result += write(node.part);
        return result;
      }
    }
  };
  return write(ruleOf(grammar, "root"));
}

function ruleOf(grammar: Grammar, name: string): Node {
  const node = grammar.get(name);
  if (node === undefined) throw new SyntaxError(`no rule ${name}`);
  return node;
}

/** Fewest characters of each expression, so that recursion ends. */
function cheapest(grammar: Grammar): (node: Node) => number {
  const rules = new Map<string, number>();
  const cost = (node: Node): number => {
    switch (node.kind) {
      case "text":
        return node.text.length;
      case "set":
        return 1;
      case "rule":
        return (rules.get(node.name) ?? Infinity) + 1;
      case "sequence":
        return node.parts.reduce((sum, part) => sum + cost(part), 0);
      case "choice":
        return Math.min(...node.options.map(cost));
      case "repeat":
        return node.min === 0 ? 0 : node.min * cost(node.part);
    }
  };
  for (let round = 0; round < grammar.size + 1; round += 1) {
    let isChanged = false;
    for (const [name, node] of grammar) {
      const value = cost(node);
      if (value >= (rules.get(name) ?? Infinity)) continue;
      rules.set(name, value);
      isChanged = true;
    }
    if (!isChanged) break;
  }
  return cost;
}

function pick(node: Extract<Node, { readonly kind: "set" }>, random: () => number): number {
  if (node.isInverted) throw new SyntaxError("no sampling from inverted sets");
  const [from, to] = node.ranges[Math.floor(random() * node.ranges.length)] ?? [0x61, 0x61];
  // Mostly near the ends, where mistakes are.
  const at = random();
  return at < 0.2 ? from : at < 0.4 ? to : from + Math.floor(random() * (to - from + 1));
}
