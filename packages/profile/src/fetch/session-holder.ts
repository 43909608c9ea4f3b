import type { ClientConnection, ClientSession, SessionOptions } from "@plenum/nnrp";

/** Opens a connection, for example by `connect(endpoint)` of `@plenum/nnrp/node`. */
export type Connect = () => Promise<ClientConnection>;

/** Keeps one session open: opened when it is first needed, and again after it was lost. */
export class SessionHolder {
  readonly #connect: Connect;
  readonly #options: SessionOptions;
  #opening: Promise<ClientSession> | undefined;
  #session: ClientSession | undefined;

  constructor(connect: Connect, options: SessionOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** @throws NnrpError when there is no way to a session. */
  async get(): Promise<ClientSession> {
    const session = this.#session;
    if (session !== undefined && !session.isClosed && !session.connection.isClosed) return session;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  async #open(): Promise<ClientSession> {
    const old = this.#session?.connection;
    this.#session = undefined;
    const connection = old === undefined || old.isClosed ? await this.#connect() : old;
    try {
      this.#session = await connection.openSession(this.#options);
      return this.#session;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  async close(): Promise<void> {
    const session = (await this.#opening?.catch(() => undefined)) ?? this.#session;
    this.#session = undefined;
    await session?.connection.close();
  }
}
