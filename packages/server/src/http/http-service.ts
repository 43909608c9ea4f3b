import type { IncomingHttpHeaders } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Core, CoreError, randomIds, toCoreError } from "@plenum/core";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { answerProblem, dispatch } from "../doors/shared/dispatch.ts";
import type { Door, DoorRequest } from "../doors/shared/door.ts";
import type { TlsPair } from "../tls-files.ts";
import { type ClientFacts, ClientReader } from "./client-facts.ts";
import { corsHeaders, preflightHeaders, refuseForeign } from "./cors.ts";
import { type HostRules, isAllowedOrigin } from "./host-check.ts";
import { HttpResponder } from "./http-responder.ts";
import { addOperatorRoutes, type OperatorFacts } from "./operator-routes.ts";
import { addUpgrades, type UpgradeRoute } from "./upgrades.ts";

export interface HttpServiceOptions extends HostRules {
  readonly core: Core;
  /** The first that owns a path answers; the first of all answers what nobody owns. */
  readonly doors: readonly Door[];
  readonly host: string;
  readonly port: number;
  /** Certificate and key: then it speaks HTTPS and nothing else. @default none */
  readonly tls?: TlsPair;
  /** Addresses and CIDR ranges of proxies whose `X-Forwarded-*` headers are believed. @default none */
  readonly trustedProxies?: readonly string[];
  /** Base URL that clients use, when a proxy stands before the service. */
  readonly publicUrl?: string;
  /** Bytes of a body; more is refused. */
  readonly requestBytes: number;
  /** Milliseconds for a request's headers to arrive. */
  readonly headerTimeoutMs: number;
  /** Milliseconds for a whole request to arrive, and that an idle connection stays open; 0: for ever. */
  readonly idleTimeoutMs: number;
  readonly operator: OperatorFacts;
  /** @default none */
  readonly upgrades?: readonly UpgradeRoute[];
  /** Told of every problem with the cause that clients don't see. */
  readonly onProblem: (error: CoreError, request: DoorRequest) => void;
  /** Told once an answer has ended or its client has gone. */
  readonly onAnswered: (request: DoorRequest, status: number) => void;
}

/** The doors behind one listener: host and origin rules, CORS, limits, request ids. */
export class HttpService {
  readonly #options: HttpServiceOptions;
  readonly #app: FastifyInstance;
  readonly #clients: ClientReader;
  /** Requests that are being answered. */
  readonly #answering = new Set<Promise<void>>();

  constructor(options: HttpServiceOptions) {
    this.#options = options;
    this.#clients = new ClientReader(options.trustedProxies ?? []);
    const server = {
      headersTimeout: shorter(options.headerTimeoutMs, options.idleTimeoutMs),
      requestTimeout: options.idleTimeoutMs,
      // Finds peers that are gone without a word.
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      // Node looks only every 30 s by itself, whatever the timeouts.
      connectionsCheckingInterval: Math.min(5_000, Math.max(100, options.headerTimeoutMs / 4)),
    };
    const { tls, headerTimeoutMs } = options;
    const listener =
      tls === undefined
        ? { http: server }
        : { https: { ...server, ...tls, ...(headerTimeoutMs > 0 && { handshakeTimeout: headerTimeoutMs }) } };
    this.#app = Fastify({
      bodyLimit: options.requestBytes,
      keepAliveTimeout: options.idleTimeoutMs,
      requestTimeout: options.idleTimeoutMs,
      forceCloseConnections: "idle",
      ...listener,
      routerOptions: { maxParamLength: 4096 },
      frameworkErrors: (_error, request, reply) => {
        this.#admit(request, reply);
        if (!reply.sent) this.#answer(request, reply);
      },
      // Both kinds of server take and answer requests alike.
    }) as FastifyInstance;
    this.#app.removeAllContentTypeParsers();
    this.#app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    this.#app.decorateRequest("requestId", "");
    this.#app.decorateRequest("responder", null);
    this.#app.decorateRequest("client", null);
    this.#app.addHook("onRequest", (request, reply, done) => {
      this.#admit(request, reply);
      // What was answered here goes no further.
      if (!reply.sent) done();
    });
    this.#app.setErrorHandler((error, request, reply) => this.#refuseBody(error, request, reply));
    addOperatorRoutes(this.#app, options.core, options.operator, (request) => this.#clientOf(request).address);
    addUpgrades(this.#app.server, options.upgrades ?? [], options, this.#clients);
    this.#app.all("/*", (request, reply) => this.#answer(request, reply));
    this.#app.setNotFoundHandler((request, reply) => this.#answer(request, reply));
  }

  /** @throws Error with code EADDRINUSE, EACCES, EADDRNOTAVAIL. */
  async listen(): Promise<void> {
    await this.#app.listen({ host: this.#options.host, port: this.#options.port });
  }

  /** Speaks with another certificate from the next connection on; those that are open stay as they are. */
  renew(pair: TlsPair): void {
    if (this.#options.tls !== undefined) (this.#app.server as unknown as SecureServer).setSecureContext(pair);
  }

  /** Port that it listens on. */
  get port(): number {
    const address = this.#app.server.address() as AddressInfo | null;
    return address?.port ?? this.#options.port;
  }

  /** Open connections. */
  connections(): Promise<number> {
    return new Promise((resolve) => {
      this.#app.server.getConnections((_error, count) => resolve(count ?? 0));
    });
  }

  /** Takes no more connections, lets answers that are under way leave, then closes what is left. */
  async close(): Promise<void> {
    const closed = this.#app.close();
    await Promise.race([Promise.allSettled([...this.#answering]), sleep(closeLimitMs, undefined, { ref: false })]);
    const { server } = this.#app;
    // A connection that falls idle after `close` would stay for its keep-alive time.
    const sweep = setInterval(() => server.closeIdleConnections(), 20);
    const force = setTimeout(() => server.closeAllConnections(), closeLimitMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(force);
  }

  /** Before the body is read: foreign hosts and origins are refused, preflights answered. */
  #admit(request: FastifyRequest, reply: FastifyReply): void {
    const { headers } = request;
    const responder = this.#responderFor(request, reply);
    try {
      refuseForeign(
        { host: this.#clientOf(request).host, origin: headers.origin, secFetchSite: one(headers["sec-fetch-site"]) },
        this.#options,
      );
    } catch (error) {
      reply.hijack();
      this.#answerProblem(toCoreError(error), request, responder);
      return;
    }
    if (request.method === "OPTIONS" && headers["access-control-request-method"] !== undefined) {
      reply.hijack();
      responder.start(204, preflightHeaders(one(headers["access-control-request-headers"])));
      responder.end();
    }
  }

  #answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const responder = this.#responderFor(request, reply);
    const doorRequest = this.#doorRequest(request);
    reply.hijack();
    const answering = this.#dispatch(doorRequest, responder, reply).then(() => {
      this.#answering.delete(answering);
    });
    this.#answering.add(answering);
    return reply;
  }

  async #dispatch(request: DoorRequest, responder: HttpResponder, { raw }: FastifyReply): Promise<void> {
    try {
      await dispatch(this.#doorOf(request.path), this.#options, request, responder);
    } catch (error) {
      this.#options.onProblem(toCoreError(error), request);
      raw.destroy();
    }
    this.#options.onAnswered(request, raw.statusCode);
  }

  /** The body could not be read. */
  #refuseBody(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { requestBytes } = this.#options;
    reply.hijack();
    this.#answerProblem(bodyProblem(error, requestBytes), request, this.#responderFor(request, reply));
  }

  #answerProblem(error: CoreError, request: FastifyRequest, responder: HttpResponder): void {
    const doorRequest = this.#doorRequest(request);
    this.#options.onProblem(error, doorRequest);
    answerProblem(this.#doorOf(doorRequest.path), error, doorRequest, responder);
  }

  #responderFor(request: FastifyRequest, reply: FastifyReply): HttpResponder {
    // Undefined where the framework fails before it knows its own decorations.
    if (request.responder) return request.responder;
    const { origin } = request.headers;
    const isAllowed = origin !== undefined && isAllowedOrigin(origin, this.#clientOf(request).host, this.#options);
    const baseHeaders = ["x-request-id", requestIdOf(request), ...corsHeaders(origin, isAllowed)];
    const stallTimeoutMs = this.#options.idleTimeoutMs;
    const responder = new HttpResponder({ raw: reply.raw, socket: request.raw.socket, baseHeaders, stallTimeoutMs });
    request.responder = responder;
    return responder;
  }

  #doorOf(path: string): Door {
    const { doors } = this.#options;
    const door = doors.find((candidate) => candidate.owns(path)) ?? doors[0];
    if (door === undefined) throw new RangeError("a service needs a door");
    return door;
  }

  #clientOf(request: FastifyRequest): ClientFacts {
    request.client ??= this.#clients.read(request.raw);
    return request.client;
  }

  #doorRequest(request: FastifyRequest): DoorRequest {
    const { headers, method, raw } = request;
    const { address, host, isSecure } = this.#clientOf(request);
    // The absolute form is as good as the path alone (RFC 9112 §3.2.2).
    const url = raw.url ?? "/";
    const target = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*(?=[/?]|$)/i, "") || "/";
    const queryStart = target.indexOf("?");
    const path = queryStart < 0 ? target : target.slice(0, queryStart);
    return {
      method,
      path,
      query: queryStart < 0 ? noQuery : new URLSearchParams(target.slice(queryStart + 1)),
      headers: flatten(headers),
      body: request.body instanceof Uint8Array ? request.body : new Uint8Array(0),
      peer: address,
      requestId: requestIdOf(request),
      origin: this.#options.publicUrl ?? `${isSecure ? "https" : "http"}://${host ?? "127.0.0.1"}`,
    };
  }
}

/** Milliseconds that answers get to leave when the service closes. */
const closeLimitMs = 5_000;

/** The shorter of two times of which 0 means for ever. */
function shorter(a: number, b: number): number {
  if (a === 0 || b === 0) return Math.max(a, b);
  return Math.min(a, b);
}

function bodyProblem(error: unknown, requestBytes: number): CoreError {
  switch (typeof error === "object" && error !== null && "code" in error ? error.code : undefined) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new CoreError("request-too-large", `The body may have ${requestBytes} bytes; send less.`, {
        limit: requestBytes,
      });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new CoreError("unsupported-media-type", "The content-type can't be read; send application/json.", {
        param: "content-type",
      });
    default:
      return new CoreError("invalid-request", "The body could not be read.", {}, { cause: error });
  }
}

const noQuery = new URLSearchParams();

declare module "fastify" {
  interface FastifyRequest {
    requestId: string;
    /** One for each request, also where the framework answers twice. */
    responder: HttpResponder | null;
    /** Read once. */
    client: ClientFacts | null;
  }
}

/** The client's own `X-Request-Id` when it has a plain form. */
function requestIdOf(request: FastifyRequest): string {
  if (request.requestId) return request.requestId;
  const sent = one(request.headers["x-request-id"]);
  request.requestId = sent !== undefined && /^[\w.:-]{1,128}$/.test(sent) ? sent : `req_${randomIds.unique()}`;
  return request.requestId;
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

type FlatHeaders = Record<string, string | undefined>;

/** Of all headers, node:http makes a list only of this one. */
function isFlat(headers: IncomingHttpHeaders): headers is IncomingHttpHeaders & FlatHeaders {
  return headers["set-cookie"] === undefined;
}

function flatten(headers: IncomingHttpHeaders): FlatHeaders {
  if (isFlat(headers)) return headers;
  const flat: FlatHeaders = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}
