import { createClient } from "@plenum/client";
import type { BackendModel, BackendRequest, BackendSink } from "@plenum/core";
import type { Upstream } from "../shared/upstream.ts";
import { lmspProblem } from "./errors.ts";
import { Exchanges } from "./exchanges.ts";
import type { LmspSettings } from "./options.ts";
import { toWireRequest } from "./request.ts";
import { EventReader } from "./stream.ts";

export interface RespondOptions {
  readonly upstream: Upstream;
  readonly settings: LmspSettings;
  readonly request: BackendRequest;
  readonly model: BackendModel;
  readonly sink: BackendSink;
  readonly signal: AbortSignal;
}

/**
 * Runs one request to its end over as many connections as it takes. The response goes on over there while a connection is
 * lost, so an abort is told by a cancel, whose end is waited for.
 * @throws CoreError; the signal's reason
 */
export async function respondAt({ upstream, settings, request, model, sink, signal }: RespondOptions): Promise<void> {
  const { baseUrl, authorization } = settings;
  const exchanges = new Exchanges(upstream, baseUrl, { ...authorization, ...viaOf(settings, request.via) });
  const client = createClient({ baseUrl, fetch: exchanges.fetch });
  const reader = new EventReader(request.candidates, sink);
  try {
    const wire = toWireRequest(request, model, Date.now());
    for await (const event of client.responses.stream(wire, { signal })) reader.take(event);
    signal.throwIfAborted();
    reader.end();
  } catch (error) {
    if (signal.aborted) reader.stop();
    else reader.flush();
    await exchanges.idle(settings.cancelTimeoutMs);
    signal.throwIfAborted();
    throw lmspProblem(error);
  }
}

/** The services that a request has come through, this one last. */
export function viaOf({ serviceId }: LmspSettings, via: readonly string[] = []): Readonly<Record<string, string>> {
  const ids = serviceId === undefined ? via : [...via, serviceId];
  return ids.length === 0 ? {} : { "x-lmsp-via": ids.join(", ") };
}
