import { CoreError } from "@plenum/core";
import { errors } from "undici";

/** What can be said of an error by its code: the server was never reached. */
const unreachable: Readonly<Record<string, string>> = {
  ECONNREFUSED: "The runtime refuses connections; start it, or correct its address.",
  ENOTFOUND: "The runtime's host name is not known; correct its address.",
  EAI_AGAIN: "The runtime's host name can't be looked up now; check the network.",
  EHOSTUNREACH: "The runtime's host can't be reached; check the network.",
  ENETUNREACH: "The runtime's host can't be reached; check the network.",
  EADDRNOTAVAIL: "The runtime's host can't be reached from here; check the network.",
  EACCES: "The runtime may not be connected to, by order of this system.",
  EPERM: "The runtime may not be connected to, by order of this system.",
  UND_ERR_CONNECT_TIMEOUT: "The runtime does not take connections in time; check that it runs.",
};

/** The connection stood, but no whole answer came. */
const broken: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_TIMEOUT: "The runtime took too long to answer; the connection was closed.",
  UND_ERR_BODY_TIMEOUT: "The runtime fell silent within its answer; the connection was closed.",
  UND_ERR_HEADERS_OVERFLOW: "The runtime's answer has too long a head.",
  UND_ERR_DESTROYED: "The runtime's connection was closed by this service.",
  UND_ERR_CLOSED: "The runtime's connection was closed by this service.",
};

/** A call that failed in undici or below, as the core's problem. @param hasHead true: the head of the answer came */
export function upstreamFailure(error: Error, hasHead: boolean): CoreError {
  const { code, isTls } = traitsOf(error);
  const sentence = unreachable[code];
  if (sentence !== undefined && !hasHead) return new CoreError("backend-unavailable", sentence, {}, { cause: error });
  if (isTls) {
    const detail = "The runtime's TLS certificate is not accepted; correct it, or its address.";
    return new CoreError("backend-unavailable", detail, {}, { cause: error });
  }
  const isHttp = !(error instanceof errors.HTTPParserError);
  const detail = broken[code] ?? (isHttp ? brokenOff(hasHead) : "The runtime's answer is not HTTP.");
  return new CoreError("backend-error", detail, {}, { cause: error });
}

function brokenOff(hasHead: boolean): string {
  return hasHead
    ? "The runtime's answer broke off before it was whole."
    : "The runtime closed the connection without an answer.";
}

function traitsOf(error: Error): { code: string; isTls: boolean } {
  const code = codeOf(error);
  // Several addresses were tried: the first one's failure stands for all.
  const first = error instanceof AggregateError && code === "" ? codeOf(error.errors[0]) : code;
  return { code: first, isTls: /CERT|^ERR_(TLS|SSL)|SELF_SIGNED|UNABLE_TO/.test(first) };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
