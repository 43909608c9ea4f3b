/** A host of files on this machine, for tests: it breaks connections, changes entity tags, lies, is slow. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How one file is served; each part is changed by tests while it runs. */
export interface ServedFile {
  bytes: Buffer;
  /** Entity tag as it stands in the header. Absent: none. */
  etag?: string;
  /** Bytes after which each answer's connection is cut, in order of answers; undefined: not cut. */
  cuts?: (number | undefined)[];
  /** Statuses answered in place of the file, in order. */
  refusals?: number[];
  /** The header `Retry-After` of refusals. */
  retryAfter?: string;
  /** False: a range is ignored. */
  hasRanges?: boolean;
  /** True: no length is told. */
  isChunked?: boolean;
  /** Sends the head and these many bytes, then nothing until `release`. */
  stallAfter?: number;
  /** Address to redirect to. */
  redirect?: string;
  /** Answered in place of the asked range's start. */
  wrongStart?: number;
}

export interface SeenRequest {
  readonly path: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly authorization: string | undefined;
}

export class FileHost {
  readonly files = new Map<string, ServedFile>();
  /** JSON answers by path with query. */
  readonly documents = new Map<string, unknown>();
  readonly seen: SeenRequest[] = [];
  /** Called when an answer stalls. */
  onStall: () => void = () => {};
  readonly #server: Server = createServer((request, response) => this.#serve(request, response));

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    const address = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}`;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Ranges that were asked of a path; `all` where none was. */
  ranges(path: string): readonly string[] {
    return this.seen.filter((request) => request.path === path).map(({ range }) => range ?? "all");
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "";
    const { range, authorization } = request.headers;
    const header = (name: string) => request.headers[name]?.toString();
    this.seen.push({ path, range, ifRange: header("if-range"), ifNoneMatch: header("if-none-match"), authorization });
    const document = this.documents.get(path);
    if (document !== undefined) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
      return;
    }
    const file = this.files.get(path);
    if (file === undefined) response.writeHead(404).end("Entry not found");
    else this.#serveFile(file, request, response);
  }

  #serveFile(file: ServedFile, request: IncomingMessage, response: ServerResponse): void {
    const refusal = file.refusals?.shift();
    if (refusal !== undefined) {
      response.writeHead(refusal, file.retryAfter === undefined ? {} : { "retry-after": file.retryAfter }).end();
      return;
    }
    if (file.redirect !== undefined) {
      response.writeHead(302, { location: file.redirect }).end();
      return;
    }
    const { bytes, etag } = file;
    const tag: Record<string, string> = etag === undefined ? {} : { etag };
    if (etag !== undefined && request.headers["if-none-match"] === etag) {
      response.writeHead(304, tag).end();
      return;
    }
    const start = startOf(file, request);
    if (start !== undefined && start >= bytes.length) {
      response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
      return;
    }
    const from = file.wrongStart ?? start ?? 0;
    const range = { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` };
    const length = file.isChunked ? {} : { "content-length": String(bytes.length - from) };
    response.writeHead(start === undefined ? 200 : 206, { ...tag, ...length, ...(start === undefined ? {} : range) });
    this.#send(file, bytes.subarray(from), response);
  }

  #send(file: ServedFile, body: Buffer, response: ServerResponse): void {
    const cut = file.cuts?.shift();
    const stall = file.stallAfter;
    if (stall !== undefined) {
      response.write(body.subarray(0, stall), () => this.onStall());
      return;
    }
    if (cut === undefined) {
      response.end(body);
      return;
    }
    // What was written has left when the callback runs; a closed socket then ends it in the middle.
    response.write(body.subarray(0, cut), () => setTimeout(() => response.destroy(), 20));
  }
}

function startOf(file: ServedFile, request: IncomingMessage): number | undefined {
  const start = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1];
  if (start === undefined || file.hasRanges === false) return undefined;
  const condition = request.headers["if-range"]?.toString();
  return condition === undefined || condition === file.etag ? Number(start) : undefined;
}

/** Bytes that look like a GGUF file by their first four, the same for the same seed. */
export function ggufBytes(length: number, seed = 7): Buffer {
  const bytes = Buffer.alloc(length);
  for (let place = 0; place < length; place++) bytes[place] = (place * seed + (place >> 8)) % 251;
  bytes.write("GGUF", "latin1");
  return bytes;
}

export function sha256Of(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
