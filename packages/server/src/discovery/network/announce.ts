import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { CiaoService, Responder, ServiceOptions } from "@homebridge/ciao";
import { formatTxt, type ServiceTxt } from "@plenum/client/node";

export interface AnnounceOptions {
  /** Name that people see; one that is taken on the network gets a number behind it. */
  readonly name: string;
  /** TCP port of the HTTP listener. */
  readonly port: number;
  /** Address that it listens on; only what can be reached through it is told. */
  readonly host: string;
  /** What is told of it; asked again and again, and told anew when it has changed. */
  readonly txt: () => ServiceTxt;
  /** Told of the name when the network has another service of the wanted one. */
  readonly onRenamed?: (name: string) => void;
  /** Told of the addresses each time that the networks were told. */
  readonly onAnnounced?: (addresses: readonly string[]) => void;
  /** Announcing failed; nobody will find the service by itself. */
  readonly onFault?: (error: unknown) => void;
}

/** A service that the local network is told of. */
export interface Announcement {
  /** Says goodbye. */
  close(): Promise<void>;
}

/** Milliseconds between looks at the machine's networks, and at what is told. */
const lookIntervalMs = 5_000;

/**
 * Announces the service as `_lmsp._tcp` in `.local` (LMSP §1, RFC 6762, RFC 6763) on every IPv4 network that its address
 * is on, again when these change, and answers who asks for it.
 */
export function announceService(options: AnnounceOptions): Announcement {
  return new Announcer(options);
}

class Announcer implements Announcement {
  readonly #options: AnnounceOptions;
  readonly #timer: NodeJS.Timeout;
  #txt = "";
  #networks = "";
  #service: CiaoService | undefined;
  #responder: Responder | undefined;
  /** Changes run one after the other. */
  #last: Promise<void>;
  #isClosed = false;

  constructor(options: AnnounceOptions) {
    this.#options = options;
    this.#last = this.#look();
    this.#timer = setInterval(() => {
      this.#last = this.#last.then(() => this.#look());
    }, lookIntervalMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#last;
    await this.#leave();
  }

  async #look(): Promise<void> {
    const networks = networksOf(this.#options.host);
    const names = JSON.stringify(networks);
    if (this.#isClosed) return;
    const txt = this.#options.txt();
    const isTold = JSON.stringify(txt) === this.#txt;
    this.#txt = JSON.stringify(txt);
    if (names === this.#networks) {
      if (!isTold) this.#service?.updateTxt(formatTxt(txt));
      return;
    }
    this.#networks = names;
    await this.#leave();
    if (networks.length === 0) return;
    try {
      const { port, onRenamed, onAnnounced } = this.#options;
      this.#responder = await makeResponder(networks);
      this.#service = this.#responder.createService({
        name: labelOf(this.#options.name),
        type: "lmsp",
        port,
        // The machine's own name may be announced by another program; this one nobody else has.
        hostname: `plenum-${txt.id.slice(0, 12)}-${port}`,
        txt: formatTxt(txt),
        ...reachable(this.#options.host),
      });
      this.#service.on("name-change", (name) => onRenamed?.(name));
      this.#service.on("hostname-change", () => {});
      await this.#service.advertise();
      onAnnounced?.(networks.map(({ address }) => address));
    } catch (error) {
      this.#options.onFault?.(error);
    }
  }

  async #leave(): Promise<void> {
    const [service, responder] = [this.#service, this.#responder];
    this.#service = undefined;
    this.#responder = undefined;
    try {
      await service?.destroy();
      await responder?.shutdown();
    } catch (error) {
      this.#options.onFault?.(error);
    }
  }
}

interface Network {
  /** Of the interface. */
  readonly name: string;
  readonly address: string;
}

/** Networks that the address is on. */
function networksOf(host: string): readonly Network[] {
  const all = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family, internal }) => family === "IPv4" && !internal)
      .map(({ address }) => ({ name, address })),
  );
  return isIP(host) === 4 && host !== "0.0.0.0" ? all.filter(({ address }) => address === host) : all;
}

/**
 * The library turns on a mapping of every stack in the process and takes over how uncaught errors are shown; both are the
 * service's own business, so they are put back. It is told the interfaces, since it misreads the names of virtual ones.
 */
async function makeResponder(networks: readonly Network[]): Promise<Responder> {
  const { prepareStackTrace } = Error;
  const { emit } = process;
  const { getResponder } = await import("@homebridge/ciao");
  Error.prepareStackTrace = prepareStackTrace;
  process.emit = emit;
  return getResponder({ interface: [...new Set(networks.map(({ name }) => name))] });
}

/** Bytes of one label of a name (RFC 1035 §2.3.4), and of those as many as a number behind it takes. */
const longestLabel = 63;
const roomForNumber = 6;

/** A name as one label: a dot would divide it, and control characters would reach the terminals of others. */
function labelOf(name: string): string {
  const clean = name.replace(/[.\p{Cc}]+/gu, "-");
  let label = "";
  for (const character of clean) {
    if (Buffer.byteLength(label + character) > longestLabel - roomForNumber) break;
    label += character;
  }
  return label === "" ? "plenum" : label;
}

function reachable(host: string): Partial<ServiceOptions> {
  if (host === "0.0.0.0") return { disabledIpv6: true };
  return isIP(host) === 0 || host === "::" ? {} : { restrictedAddresses: [host] };
}
