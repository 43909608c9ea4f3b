import { type Caller, type Core, CoreError } from "@plenum/core";
import {
  type CarrierInfo,
  type ServerSession,
  type SessionDecision,
  SessionErrorCode,
  type SessionRequest,
} from "@plenum/nnrp";
import { bearerIn } from "../shared/bearer.ts";

/** What the door keeps with a session. */
interface SessionData {
  /** The token that came with the connection or the session's opening. */
  readonly token: string | undefined;
}

/**
 * Decides about a session: a token that came with its connection must be good, one that did not come may still come with
 * each request.
 */
export function decideSession(core: Core, request: SessionRequest): SessionDecision {
  const token = tokenOf(request);
  const data: SessionData = { token };
  if (token === undefined) return { accept: true, data };
  try {
    core.authenticator.authenticate(token, peerOf(request.connection.carrier));
    return { accept: true, data };
  } catch (error) {
    if (!(error instanceof CoreError)) throw error;
    return { accept: false, code: SessionErrorCode.authFailed, reason: error.message };
  }
}

/**
 * Who asks: by the request's own token, else by the session's.
 * @param authorization of the request, such as `Bearer <token>`.
 * @throws CoreError unauthorized
 */
export function authenticate(core: Core, session: ServerSession, authorization: string | undefined): Caller {
  const { token } = session.data as SessionData;
  const bearer = authorization === undefined ? token : bearerIn(authorization);
  return core.authenticator.authenticate(bearer, peerOf(session.connection.carrier));
}

/** From the session's opening, the hello, the upgrade's header, or its query, in this order. */
function tokenOf({ authBlock, connection }: SessionRequest): string | undefined {
  const block = authBlock ?? connection.authBlock;
  if (block !== undefined) return inBlock(block);
  const { upgrade } = connection.carrier;
  if (upgrade === undefined) return undefined;
  const header = upgrade.headers["authorization"];
  const bearer = bearerIn(typeof header === "string" ? header : undefined);
  if (bearer !== undefined) return bearer;
  const query = upgrade.target.indexOf("?");
  return query < 0 ? undefined : (new URLSearchParams(upgrade.target.slice(query)).get("token") ?? undefined);
}

/** A block is the token, or the value of an `Authorization` header. */
function inBlock(block: Uint8Array): string {
  const text = new TextDecoder().decode(block);
  return bearerIn(text) ?? text;
}

/** The peer's address without its port, for fairness while the service is open. */
function peerOf({ kind, remote }: CarrierInfo): string {
  return kind === "ipc" ? "ipc" : remote.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}
