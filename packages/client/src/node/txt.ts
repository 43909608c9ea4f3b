/** What a service says of itself on the local network, in the TXT record of DNS-SD (LMSP §1, RFC 6763 §6). */
export interface ServiceTxt {
  /** LMSP version, such as `1.0`. */
  readonly version: string;
  /** Service id. */
  readonly id: string;
  readonly tls: boolean;
  readonly auth: "none" | "bearer";
  /** Interfaces that it offers, such as `lmsp` and `openai`. */
  readonly kinds: readonly string[];
}

/**
 * Reads the strings of a TXT record. Keys are case-insensitive and the first of a name counts. `path` is not looked at:
 * the document of a service stands at one path only, and a stranger's record must not choose what is fetched.
 * @returns undefined when it is no service of LMSP 1.
 */
export function parseTxt(strings: readonly Uint8Array[]): ServiceTxt | undefined {
  const values = new Map<string, string>();
  for (const bytes of strings) {
    const text = decoder.decode(bytes);
    const split = text.indexOf("=");
    // What has no value is a flag, and one without a name is to be passed over.
    if (split < 1) continue;
    const key = text.slice(0, split).toLowerCase();
    if (!values.has(key)) values.set(key, text.slice(split + 1));
  }
  const { txtvers = "1", v: version = "", id = "", tls = "0", auth, kinds = "" } = Object.fromEntries(values);
  if (txtvers !== "1" || !/^1\.\d{1,4}$/.test(version) || !isServiceId(id)) return undefined;
  return {
    version,
    id,
    tls: tls === "1",
    auth: auth === "bearer" ? "bearer" : "none",
    kinds: kinds
      .split(",")
      .filter((kind) => /^[a-z0-9-]{1,20}$/.test(kind))
      .slice(0, mostKinds),
  };
}

const decoder = new TextDecoder();
const mostKinds = 16;

/** Whether a text may be the id of a service: it stands in addresses and logs. */
function isServiceId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** Pairs of the TXT record in the order in which they are sent; `path` is there for other programs. */
export function formatTxt({ version, id, tls, auth, kinds }: ServiceTxt): Readonly<Record<string, string>> {
  return {
    txtvers: "1",
    v: version,
    id,
    path: "/.well-known/lmsp",
    tls: tls ? "1" : "0",
    auth,
    kinds: kinds.join(","),
  };
}
