import { z } from "zod";
import { addedRuntimeSchema } from "../../../config/index.ts";
import { approvalSchema } from "../runtimes.ts";
import { changesSchema, responseSchema } from "../schema.ts";
import { accessSchemas } from "../tokens.ts";
import * as answers from "./answers.ts";

/** What the OpenAPI document tells of an operation beyond its path and scope. */
export interface Described {
  readonly summary: string;
  /** What stands for the path's `*`. */
  readonly path?: string;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body?: z.ZodType;
  /** True: the body may be left out. */
  readonly isBodyOptional?: boolean;
  /** Schema of each good status; null: no body. Texts are media types of bodies without a schema. */
  readonly answers: Readonly<Record<number, z.ZodType | null | string>>;
  /** Further media types of the same status. */
  readonly alsoStream?: boolean;
  /** Statuses of problems that this operation has of its own. */
  readonly problems: readonly number[];
}

const limit = z.int().min(1).max(1000).default(100);
const cursor = z.string();
const place = z.int().min(0);
const statuses = z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]);
const states = z.enum(["queued", "running", "succeeded", "failed", "cancelled"]);
const kinds = z.enum(["response", "model.pull", "model.load", "model.unload", "batch"]);
const priority = z.int().min(-8).max(8).nullish();

const taskBody = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("response"), request: responseSchema }),
  z.object({ kind: z.literal("model.pull"), source: z.string().min(1), sha256: z.string().nullish() }),
  z.object({
    kind: z.literal("model.load"),
    model: z.string().min(1),
    keep_alive: z.union([z.int(), z.string()]).nullish(),
  }),
  z.object({ kind: z.literal("model.unload"), model: z.string().min(1) }),
  z.object({ kind: z.literal("batch"), requests: z.union([z.string(), z.array(z.unknown())]), priority }),
]);

/** What a run can end with, whatever it was asked. */
const runProblems = [400, 403, 404, 409, 413, 415, 422, 429, 499, 500, 502, 503, 504, 507];
const eventStream = "text/event-stream";

/** Every operation of the door, by its name; a test compares. */
export const described: Readonly<Record<string, Described>> = {
  service: { summary: "The service document (LMSP §1).", answers: { 200: answers.service }, problems: [] },
  openapi: { summary: "This document.", answers: { 200: z.looseObject({}) }, problems: [] },
  "models.list": {
    summary: "The catalog (LMSP §4).",
    headers: { "If-None-Match": z.string() },
    answers: { 200: answers.pageOf(answers.model), 304: null },
    problems: [],
  },
  "models.get": {
    summary: "One model, by id or alias.",
    path: "Catalog id or alias; slashes and colons may be encoded.",
    answers: { 200: answers.model },
    problems: [404],
  },
  "models.delete": {
    summary: "Removes a model with its files.",
    path: "Catalog id or alias.",
    answers: { 204: null },
    problems: [404, 409, 422, 502, 503],
  },
  "responses.create": {
    summary: "Runs a request (LMSP §5): the Response, its event stream, or 202 when it is a background one.",
    headers: { Prefer: z.string(), "Idempotency-Key": z.string() },
    body: responseSchema,
    answers: { 200: answers.response, 202: answers.response },
    alsoStream: true,
    problems: runProblems,
  },
  "responses.list": {
    summary: "Responses of every door, newest first.",
    query: {
      door: z.enum(["lmsp", "openai", "ollama", "nnrp"]),
      model: z.string(),
      status: statuses,
      owner: z.string(),
      cursor,
      limit,
    },
    answers: { 200: answers.pageOf(answers.response) },
    problems: [400],
  },
  "responses.events": {
    summary: "The event stream of a response (LMSP §6), from a place on; 204 when nothing is after it.",
    path: "Id of a response.",
    query: { after: place },
    headers: { "Last-Event-ID": z.string() },
    answers: { 200: eventStream, 204: null },
    problems: [400, 404, 410],
  },
  "responses.cancel": {
    summary: "Stops a response, wherever it is.",
    path: "Id of a response.",
    answers: { 200: answers.response },
    problems: [404],
  },
  "responses.get": {
    summary: "A response as it is now.",
    path: "Id of a response.",
    answers: { 200: answers.response },
    problems: [404],
  },
  "responses.change": {
    summary: "Changes the priority or the deadline of a response that waits or runs.",
    path: "Id of a response.",
    body: changesSchema,
    answers: { 200: answers.response },
    problems: [400, 404, 409, 413, 415, 504],
  },
  "responses.delete": {
    summary: "Stops and forgets a response.",
    path: "Id of a response.",
    answers: { 204: null },
    problems: [404],
  },
  "tasks.create": {
    summary: "Accepts work that outlives its request (LMSP §7).",
    headers: { Prefer: z.string(), "Idempotency-Key": z.string() },
    body: taskBody,
    answers: { 202: answers.task },
    problems: runProblems,
  },
  "tasks.list": {
    summary: "Tasks, newest first.",
    query: { kind: kinds, state: states, owner: z.string(), cursor, limit },
    answers: { 200: answers.pageOf(answers.task) },
    problems: [400],
  },
  "tasks.events": {
    summary: "The event stream of a task, from a place on; 204 when nothing is after it.",
    path: "Id of a task.",
    query: { after: place },
    headers: { "Last-Event-ID": z.string() },
    answers: { 200: eventStream, 204: null },
    problems: [400, 404, 410],
  },
  "tasks.output": {
    summary: "What a batch has answered so far, in the order of its requests.",
    path: "Id of a batch.",
    answers: { 200: "application/jsonl" },
    problems: [404, 409],
  },
  "tasks.cancel": {
    summary: "Stops a task.",
    path: "Id of a task.",
    answers: { 200: answers.task },
    problems: [404],
  },
  "tasks.get": {
    summary: "A task as it is now.",
    path: "Id of a task.",
    answers: { 200: answers.task },
    problems: [404],
  },
  "tasks.delete": {
    summary: "Stops and forgets a task.",
    path: "Id of a task.",
    answers: { 204: null },
    problems: [404],
  },
  "runtimes.list": {
    summary: "What runs the models.",
    answers: { 200: answers.pageOf(answers.runtime) },
    problems: [],
  },
  "runtimes.add": {
    summary: "Adds a runtime, which is kept.",
    body: addedRuntimeSchema,
    answers: { 201: answers.runtime },
    problems: [400, 409, 413, 415, 422, 502, 503],
  },
  "runtimes.remove": {
    summary: "Removes a runtime that was added or approved.",
    path: "Id of a runtime.",
    answers: { 204: null },
    problems: [404, 409],
  },
  "nearby.list": {
    summary: "Services that were found on the local network.",
    answers: { 200: answers.pageOf(answers.nearby) },
    problems: [],
  },
  "nearby.approve": {
    summary: "Makes a runtime of a service that was found.",
    path: "Service id.",
    body: approvalSchema,
    isBodyOptional: true,
    answers: { 200: answers.runtime },
    problems: [400, 404, 409, 413, 415, 502, 503],
  },
  "principals.list": {
    summary: "Who owns what is made here.",
    answers: { 200: answers.pageOf(answers.principal) },
    problems: [],
  },
  "principals.create": {
    summary: "Makes a principal.",
    body: accessSchemas.principal,
    answers: { 201: answers.principal },
    problems: [400, 409, 413, 415],
  },
  "principals.delete": {
    summary: "Deletes a principal with its tokens.",
    path: "Id of a principal.",
    answers: { 204: null },
    problems: [404, 409],
  },
  "tokens.list": {
    summary: "Tokens, never themselves.",
    query: { principal: z.string() },
    answers: { 200: answers.pageOf(answers.token) },
    problems: [],
  },
  "tokens.create": {
    summary: "Makes a token and tells it once.",
    body: accessSchemas.token,
    answers: { 201: answers.newToken },
    problems: [400, 409, 413, 415],
  },
  "tokens.rotate": {
    summary: "Makes a token with the rights of another, which ends.",
    path: "Id of a token.",
    body: accessSchemas.rotation,
    isBodyOptional: true,
    answers: { 201: answers.newToken },
    problems: [400, 404, 409, 413, 415],
  },
  "tokens.revoke": {
    summary: "Ends a token at once.",
    path: "Id of a token.",
    answers: { 204: null },
    problems: [404, 409],
  },
  events: {
    summary: "One stream of everything that is watched (LMSP §8).",
    query: { topics: z.string(), watch: z.string() },
    answers: { 200: eventStream },
    problems: [400, 404, 410],
  },
  metrics: {
    summary: "The service's own short history.",
    query: { window: z.string().regex(/^\d{1,6}(s|m|h)$/), step: z.string().regex(/^\d{1,6}(s|m|h)$/) },
    answers: { 200: answers.metrics },
    problems: [400],
  },
};
