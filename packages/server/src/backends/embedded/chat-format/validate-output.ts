import { CoreError, type JsonSchema, type OutputFormat } from "@plenum/core";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { parseObject } from "./call-arguments.ts";

/** @throws CoreError invalid-output when a finished answer does not fit the format that was asked for */
export function validateOutput(text: string, format: OutputFormat): void {
  if (format.type === "text") return;
  if (format.type === "json") {
    if (parseObject(text) === undefined) throw invalidOutput("The model's answer is no JSON object; ask again.");
    return;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidOutput("The model's answer is no JSON; ask again.", cause);
  }
  const problem = findMisfit(value, format.schema);
  if (problem !== undefined) throw invalidOutput(`The model's answer does not fit the schema: ${problem}.`);
}

/** @throws CoreError invalid-output when a forced call's arguments do not fit its tool's schema */
export function validateArguments(name: string, text: string, schema: JsonSchema | undefined): void {
  const value = parseObject(text);
  const problem =
    value === undefined ? "they are no JSON object" : schema === undefined ? undefined : findMisfit(value, schema);
  if (problem !== undefined)
    throw invalidOutput(`The model's arguments for "${name}" do not fit its schema: ${problem}.`);
}

/** What is wrong, in a few words; undefined when the value fits. */
function findMisfit(value: unknown, schema: JsonSchema): string | undefined {
  const ajv = new Ajv2020({ strict: false, validateFormats: true, logger: false });
  ajvFormats.default(ajv);
  const validate = ajv.compile(typeof schema === "boolean" ? schema : withoutNames(schema));
  if (validate(value)) return undefined;
  const [error] = validate.errors ?? [];
  return `${error?.instancePath || "the whole"} ${error?.message ?? "does not fit"}`;
}

/** The dialect and name of a schema would make ajv look for things that it does not have. */
function withoutNames(schema: Exclude<JsonSchema, boolean>): Record<string, unknown> {
  const { $schema: _dialect, $id: _name, ...rest } = schema;
  return rest;
}

function invalidOutput(detail: string, cause?: unknown): CoreError {
  return new CoreError("invalid-output", detail, {}, cause === undefined ? undefined : { cause });
}
