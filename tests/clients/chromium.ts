import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";

const executable =
  process.env["PLENUM_TEST_CHROMIUM"] ??
  ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path));

/** Why there is no browser; undefined when there is one. */
export const noChromium =
  executable === undefined ? "there is no Chromium; install it, or name it by PLENUM_TEST_CHROMIUM" : undefined;
if (noChromium !== undefined) console.error(`!!! NNRP IS NOT TESTED IN A BROWSER: ${noChromium}`);

/** The built libraries as a page imports them, without a bundler. */
const imports = {
  "@plenum/nnrp": "/nnrp/index.js",
  "@plenum/nnrp/browser": "/nnrp/browser/index.js",
  "@plenum/profile": "/profile/index.js",
};
const html = `<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import { connect } from "@plenum/nnrp/browser";
  import { createProfileClient, nnrpFetch } from "@plenum/profile";
  globalThis.plenum = { connect, createProfileClient, nnrpFetch };
</script>`;

export interface OpenPage {
  readonly page: Page;
  /** Version of the browser. */
  readonly version: string;
  /** Errors of the page that nothing caught. */
  readonly errors: readonly Error[];
  close(): Promise<void>;
}

/** Opens a page on loopback whose global `plenum` holds the libraries. */
export async function openPage(): Promise<OpenPage> {
  const server = createServer((request, response) => {
    const place = /^\/(nnrp|profile)\/((?:[\w-]+\/)*[\w-]+\.js)$/.exec(request.url ?? "");
    if (place === null) {
      response.setHeader("content-type", "text/html").end(html);
      return;
    }
    readFile(fileURLToPath(new URL(`../../packages/${place[1]}/dist/${place[2]}`, import.meta.url))).then(
      (text) => response.setHeader("content-type", "text/javascript").end(text),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  let browser: Browser | undefined;
  const close = async () => {
    await browser?.close();
    server.close();
    server.closeAllConnections();
  };
  try {
    // Root, as which containers run, has no sandbox.
    browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] });
    const page = await browser.newPage();
    const errors: Error[] = [];
    page.on("pageerror", (error) => errors.push(error));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await page.waitForFunction(() => "plenum" in globalThis);
    return { page, version: browser.version(), errors, close };
  } catch (error) {
    await close();
    throw error;
  }
}
