import { z } from "zod";
import type { Operation } from "../../shared/door.ts";
import { responseSchema } from "../schema.ts";
import * as answers from "./answers.ts";
import { type Described, described } from "./operations.ts";

type Json = Record<string, unknown>;

/**
 * The OpenAPI 3.1 document of the native interface, made from the schemas that check requests.
 * @param version of the product
 */
export function createDocument(operations: readonly Operation[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const about = described[operation.name];
    if (about === undefined) throw new TypeError(`The operation ${operation.name} is not described.`);
    const path = operation.path.replace("*", "{id}");
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: toOperation(operation, about) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "LMSP 1.0",
      version,
      summary: "The native interface of a model service.",
      description: "Discovery, capabilities, event streams that resume, and tasks. docs/lmsp.md is its specification.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The service itself." }],
    security: [{ bearer: [] }, {}],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: namedSchemas(),
    },
  };
}

/** Resources, as the beginnings of operations' names. */
const tags = {
  service: "What the service is and where it is reached.",
  openapi: "The interface, described for machines.",
  models: "The catalog.",
  responses: "The unit of work, and its events.",
  tasks: "Work that outlives its request.",
  runtimes: "What runs the models.",
  nearby: "Services of the local network.",
  principals: "Who owns what is made.",
  tokens: "What speaks for principals.",
  events: "Everything that happens, on one stream.",
  metrics: "The service's own short history.",
};

function tagOf(name: string): string {
  return name.split(".")[0] ?? name;
}

function toOperation({ name, path, scope }: Operation, about: Described): Json {
  const good = Object.entries(about.answers).map(([status, answer]) => [status, toAnswer(status, answer, about)]);
  const codes = [...new Set([...about.problems, ...commonProblems(path, scope)])].sort((a, b) => a - b);
  const problems = codes.map((status) => [String(status), refTo("Problem")] as const);
  const parameters = parametersOf(path, about);
  return {
    operationId: name,
    tags: [tagOf(name)],
    summary: about.summary,
    ...(scope === null ? { security: [{}] } : { "x-scope": scope }),
    ...(parameters.length > 0 && { parameters }),
    ...(about.body !== undefined && {
      requestBody: {
        required: about.isBodyOptional !== true,
        content: { "application/json": { schema: toSchema(about.body, "input") } },
      },
    }),
    responses: {
      ...Object.fromEntries(good),
      ...Object.fromEntries(
        problems.map(([status, schema]) => [
          status,
          { description: "A problem.", content: { "application/problem+json": { schema } } },
        ]),
      ),
    },
  };
}

/** What every operation may answer: no token, no scope, a foreign Host, a full or stopping service, a mistake of ours. */
function commonProblems(path: string, scope: Operation["scope"]): readonly number[] {
  const access = scope === null ? [403] : [401, 403];
  // What stands for `*` may be nothing that a path can hold.
  return [...access, ...(path.includes("*") ? [400, 404] : []), 405, 413, 429, 500, 503];
}

function toAnswer(status: string, answer: z.ZodType | null | string, about: Described): Json {
  const description = Number(status) === 202 ? "Accepted." : answer === null ? "Nothing to tell." : about.summary;
  if (answer === null) return { description };
  if (typeof answer === "string") return { description, content: { [answer]: { schema: { type: "string" } } } };
  const isAlsoStream = about.alsoStream === true && status === "200";
  return {
    description,
    content: {
      "application/json": { schema: toSchema(answer, "output") },
      ...(isAlsoStream && { "text/event-stream": { schema: { type: "string" } } }),
    },
  };
}

function parametersOf(path: string, about: Described): readonly Json[] {
  const parameter = (place: string, name: string, schema: Json, description?: string): Json => ({
    name,
    in: place,
    required: place === "path",
    ...(description !== undefined && { description }),
    schema,
  });
  const listed = (place: string, of: Readonly<Record<string, z.ZodType>> = {}) =>
    Object.entries(of).map(([name, schema]) => parameter(place, name, toSchema(schema, "input")));
  return [
    ...(path.includes("*") ? [parameter("path", "id", { type: "string", minLength: 1 }, about.path)] : []),
    ...listed("query", about.query),
    ...listed("header", about.headers),
  ];
}

/** Schemas with a name of their own in the document. */
const named = new Map<unknown, string>([
  [answers.problem, "Problem"],
  [answers.response, "Response"],
  [answers.outputItem, "OutputItem"],
  [answers.model, "Model"],
  [answers.task, "Task"],
  [answers.principal, "Principal"],
  [answers.token, "Token"],
  [answers.runtime, "Runtime"],
  [answers.nearby, "NearbyService"],
  [answers.metrics, "MetricsHistory"],
  [answers.service, "ServiceDocument"],
  [responseSchema, "ResponseRequest"],
]);

function namedSchemas(): Json {
  const schemas = [...named].map(([schema, name]) => {
    const io = schema === responseSchema ? "input" : "output";
    return [name, convert(schema as z.ZodType, io)] as const;
  });
  return Object.fromEntries(schemas);
}

function toSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const name = named.get(schema);
  return name === undefined ? convert(schema, io) : refTo(name);
}

function refTo(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** JSON Schema 2020-12, which OpenAPI 3.1 takes as it is. */
function convert(schema: z.ZodType, io: "input" | "output"): Json {
  const override = ({ zodSchema, jsonSchema }: { readonly zodSchema: z.core.$ZodTypes; readonly jsonSchema: Json }) => {
    const isRoot: boolean = Object.is(zodSchema, schema);
    const name = named.get(zodSchema);
    if (name !== undefined && !isRoot) become(jsonSchema, refTo(name));
    const { def } = zodSchema._zod;
    // What is changed before it is checked is described by what it is then checked against.
    if (def.type === "pipe" && def.in._zod.def.type === "transform")
      become(jsonSchema, convert(def.out as z.ZodType, "input"));
  };
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io, unrepresentable: "any", override });
  return json;
}

function become(jsonSchema: Json, other: Json): void {
  for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
  Object.assign(jsonSchema, other);
}
