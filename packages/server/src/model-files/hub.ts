import { CoreError } from "@plenum/core";
import { z } from "zod";
import { chooseFiles } from "./choose-files.ts";
import { DownloadError, toDownloadError } from "./download-error.ts";
import { type RemoteFile, request } from "./remote-file.ts";

export interface HubOptions {
  /** Base URL, without a slash at its end. */
  readonly url: string;
  /** Sent to the hub alone; a secret. Absent: only public repositories can be read. */
  readonly token?: string;
}

/** A file of a repository, and what the hub says of it. */
export interface HubFile extends RemoteFile {
  /** Path in the repository. */
  readonly path: string;
  readonly sizeBytes: number;
}

export interface HubRepository {
  readonly owner: string;
  readonly repository: string;
  /** Quantization or file name. Absent: the one that suits most. */
  readonly variant?: string;
}

/** The parts of `GET /api/models/{owner}/{repository}?blobs=true` that are read (the hub's public API). */
const modelSchema = z.object({
  /** Commit that the list belongs to. */
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(
    z.object({
      rfilename: z.string(),
      size: z.number().int().nonnegative().nullish(),
      lfs: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().int().nonnegative() }).nullish(),
    }),
  ),
});

/** Bytes of a list of files. */
const mostListBytes = 16 * 1024 * 1024;
const listTimeoutMs = 30_000;

/**
 * The GGUF files that a source of the hub means: one, or all parts of a split one, of the newest commit.
 * @throws CoreError not-found, invalid-request with what there is, backend-unavailable, backend-error; the signal's reason
 */
export async function findHubFiles(
  source: HubRepository,
  { url: base, token }: HubOptions,
  signal: AbortSignal,
): Promise<readonly HubFile[]> {
  const name = `${source.owner}/${source.repository}`;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const model = await readModel(`${base}/api/models/${name}?blobs=true`, headers, name, signal);
  const known = model.siblings.map(({ rfilename, size, lfs }) => ({
    path: rfilename,
    sizeBytes: lfs?.size ?? size ?? undefined,
    sha256: lfs?.sha256,
  }));
  return chooseFiles(known, source).map(({ path, sizeBytes, sha256 }) => {
    if (sizeBytes === undefined) throw new CoreError("backend-error", `The hub does not say how long ${path} is.`);
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    return {
      path,
      url: `${base}/${name}/resolve/${model.sha}/${encoded}`,
      headers,
      sizeBytes,
      ...(sha256 !== undefined && { sha256 }),
    };
  });
}

async function readModel(
  url: string,
  headers: Readonly<Record<string, string>>,
  name: string,
  signal: AbortSignal,
): Promise<z.infer<typeof modelSchema>> {
  const host = new URL(url).host;
  const late = AbortSignal.timeout(listTimeoutMs);
  try {
    const answer = await request(
      { url, headers },
      { headers: { accept: "application/json" }, signal: AbortSignal.any([signal, late]) },
    );
    if (!answer.ok) {
      await answer.body?.cancel();
      throw refused(answer.status, name, headers["authorization"] !== undefined);
    }
    return modelSchema.parse(JSON.parse(await readText(answer)));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CoreError) throw error;
    if (error instanceof z.ZodError || error instanceof SyntaxError) {
      throw new CoreError("backend-error", `${host} answered something that is no list of files.`);
    }
    const reason = late.aborted ? "no answer in time" : toDownloadError(error).message;
    throw new CoreError("backend-unavailable", `${host} can't be reached (${reason}).`);
  }
}

async function readText({ body }: Response): Promise<string> {
  let bytes = 0;
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > mostListBytes) throw new DownloadError("refused", "its list of files is too long");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** The hub answers 401 for what is not there as for what may not be seen. */
function refused(status: number, name: string, hasToken: boolean): CoreError {
  if (status === 404 || status === 401 || status === 403) {
    const hint = hasToken
      ? "look at the name, and whether the token in HF_TOKEN may read it (some ask to agree to their terms first)"
      : "look at the name; a private or gated one needs a token in HF_TOKEN";
    return new CoreError("not-found", `The hub shows no repository ${name}: ${hint}.`, { param: "source" });
  }
  if (status === 429 || status >= 500) {
    return new CoreError("backend-unavailable", `The hub answered ${status}; try again later.`);
  }
  return new CoreError("backend-error", `The hub answered ${status} to the question for ${name}.`);
}
