import { MemoryBus, randomIds, systemClock, Tokens } from "@plenum/core";
import { type Config, exposedAddress } from "./config/index.ts";
import { accessSchemas, toTokenRights, toWireToken } from "./doors/lmsp/tokens.ts";
import { createLogger } from "./logger.ts";
import { sha256 } from "./sha256.ts";
import { openStorage } from "./store/open-storage.ts";

type WireToken = Record<string, unknown>;

/** Tokens of a service that does not run, in the words of `/lmsp/v1/tokens`. */
export interface OwnTokens {
  list(): Promise<{ readonly data: readonly WireToken[] }>;
  /** @throws CoreError as the operation; ZodError for what is no request. */
  create(request: unknown): Promise<WireToken>;
  /** @param graceS seconds */
  rotate(id: string, graceS: number): Promise<WireToken>;
  revoke(id: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the tokens that a service with this configuration would have, to change them where it is not running.
 * @throws Error when they end with the process, or can't be opened.
 */
export async function openOwnTokens(config: Config): Promise<OwnTokens> {
  if (config.store.kind === "memory") {
    throw new Error("The store is `memory`: its tokens end with the service. Start the service, or name its address.");
  }
  const storage = await openStorage(config, createLogger({ level: "silent", format: "json" }));
  const tokens = new Tokens({
    fixed: config.auth.tokens.map(({ tokenSha256, ...token }, index) => {
      return { ...token, sha256: tokenSha256, id: `config-${index + 1}`, createdAt: 0 };
    }),
    store: storage.tokens,
    authenticator: { reload: async () => {} },
    bus: new MemoryBus(),
    clock: systemClock,
    ids: randomIds,
    sha256,
    mayBeOpen: config.insecureOpen || exposedAddress(config) === undefined,
  });
  return {
    list: async () => ({ data: (await tokens.list()).map(toWireToken) }),
    create: async (request) => {
      const { token, record } = await tokens.create(toTokenRights(accessSchemas.token.parse(request)));
      return { ...toWireToken(record), token };
    },
    rotate: async (id, graceS) => {
      const { token, record } = await tokens.rotate(id, graceS * 1_000);
      return { ...toWireToken(record), token };
    },
    revoke: (id) => tokens.revoke(id),
    close: () => storage.close(),
  };
}
