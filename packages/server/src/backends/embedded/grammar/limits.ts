/** What one grammar may cost. Beyond these a schema is refused, never held by halves. */
export const grammarLimits = {
  /** Schemas inside schemas, in levels. */
  maxDepth: 64,
  /** Schemas looked at in one document; one that is used twice counts twice. */
  maxSchemas: 5000,
  /** Schemas in one `anyOf` or `oneOf`. */
  maxBranches: 200,
  /** Rules of one grammar. */
  maxRules: 4000,
  /** Characters of one grammar's text. */
  maxGrammarCharacters: 400_000,
  /** Highest `maxLength`, `minItems`, pattern count and the like. */
  maxRepetitions: 20_000,
  /** Values of one `enum`. */
  maxEnumValues: 2000,
  /** Characters of one `pattern`. */
  maxPatternCharacters: 1000,
} as const;
