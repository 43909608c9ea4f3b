import { choice, type Expression, nothing, repeat, rule, sequence } from "./expression.ts";
import { toGbnf } from "./gbnf.ts";
import { grammarLimits } from "./limits.ts";
import { refuse } from "./refusal.ts";

/** Counts above this are cut into blocks: llama.cpp makes a rule of every repetition. */
const blockSize = 100;

/** Collects the rules of one grammar. */
export class GrammarBuilder {
  readonly #rules = new Map<string, Expression | undefined>();
  readonly #shared = new Map<string, Expression>();
  #count = 0;

  /** A name of its own for a rule that is defined later (recursion). */
  reserve(): string {
    this.#count += 1;
    const name = `r${this.#count}`;
    if (this.#count > grammarLimits.maxRules) {
      refuse("", `needs more than ${grammarLimits.maxRules} grammar rules; make it smaller.`);
    }
    this.#rules.set(name, undefined);
    return name;
  }

  define(name: string, body: Expression): Expression {
    this.#rules.set(name, body);
    return rule(name);
  }

  /** Makes a rule of its own, so that using it twice costs one name. */
  rule(body: Expression): Expression {
    if (body.kind === "rule") return body;
    return this.define(this.reserve(), body);
  }

  /** The same rule for every use of `key`; `make` may use the key itself (recursion). */
  shared(key: string, make: () => Expression): Expression {
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#shared.set(key, rule(name));
    return this.define(name, make());
  }

  /**
   * Repetition whose grammar stays small: about 2·√n rules for n.
   * @param min,max counts, 0 … `grammarLimits.maxRepetitions`; absent `max`: without end
   */
  repeat(part: Expression, min: number, max?: number): Expression {
    // llama.cpp multiplies a group's own rules by the count and refuses above 2,000: a name counts as one.
    const isSmall = part.kind === "text" || part.kind === "characters" || Math.max(min, max ?? 0) <= 1;
    const unit = isSmall ? part : this.rule(part);
    if (min <= blockSize && (max === undefined || max <= blockSize)) return repeat(unit, min, max);
    const exact = this.#exactly(unit, min);
    return max === undefined ? sequence(exact, repeat(unit, 0)) : sequence(exact, this.#upTo(unit, max - min));
  }

  #exactly(unit: Expression, count: number): Expression {
    const blocks = Math.floor(count / blockSize);
    const rest = count % blockSize;
    return sequence(
      blocks === 0 ? nothing : repeat(this.#block(unit), blocks, blocks),
      rest === 0 ? nothing : repeat(unit, rest, rest),
    );
  }

  #upTo(unit: Expression, count: number): Expression {
    if (count <= blockSize) return count === 0 ? nothing : repeat(unit, 0, count);
    const blocks = Math.floor(count / blockSize);
    const rest = count % blockSize;
    const block = this.#block(unit);
    const partial = repeat(unit, 0, blockSize - 1);
    const full = sequence(repeat(block, blocks, blocks), rest === 0 ? nothing : repeat(unit, 0, rest));
    return choice(sequence(repeat(block, 0, blocks - 1), partial), full);
  }

  #block(unit: Expression): Expression {
    return this.shared(`block of ${toGbnf(unit)}`, () => repeat(unit, blockSize, blockSize));
  }

  /** Rules that can never be finished because each of their ways needs such a rule again. */
  endless(): ReadonlySet<string> {
    const open = new Set(this.#rules.keys());
    for (let before = -1; before !== open.size; ) {
      before = open.size;
      for (const name of [...open]) {
        const body = this.#rules.get(name);
        if (body !== undefined && canEnd(body, open)) open.delete(name);
      }
    }
    return open;
  }

  /** The grammar's text, `root` first. */
  text(root: Expression): string {
    const lines = [`root ::= ${toGbnf(root)}`];
    for (const [name, body] of this.#rules) {
      if (body === undefined) throw new TypeError(`rule ${name} was never defined`);
      lines.push(`${name} ::= ${toGbnf(body)}`);
    }
    const result = `${lines.join("\n")}\n`;
    if (result.length > grammarLimits.maxGrammarCharacters) {
      refuse("", `needs a grammar of more than ${grammarLimits.maxGrammarCharacters} characters; make it smaller.`);
    }
    return result;
  }
}

function canEnd(expression: Expression, open: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case "text":
    case "characters":
      return true;
    case "rule":
      return !open.has(expression.name);
    case "sequence":
      return expression.parts.every((part) => canEnd(part, open));
    case "choice":
      return expression.options.some((option) => canEnd(option, open));
    case "repeat":
      return expression.min === 0 || canEnd(expression.part, open);
  }
}
