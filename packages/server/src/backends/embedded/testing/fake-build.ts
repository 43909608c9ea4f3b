/** GPU builds without a GPU in them: packages of the real names and versions. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildFolder, type GpuKind, packageFolder, packagesOf } from "../gpu/builds.ts";
import { pinnedVersion } from "../library-version.ts";

export interface FakeBuild {
  readonly home: string;
  readonly kind: GpuKind;
  /** @default the pinned one */
  readonly version?: string;
  /** Packages that are missing. */
  readonly leaveOut?: readonly string[];
  /** File that is written when the library asks a package for its binaries. */
  readonly marker?: string;
}

/** Puts one where `plenum engine add` puts builds. @returns its folder */
export async function putBuild({ home, kind, version = pinnedVersion, leaveOut = [], marker }: FakeBuild) {
  const folder = buildFolder(home, kind, version);
  for (const name of packagesOf(kind, { platform: "linux", arch: "x64" })?.names ?? []) {
    if (leaveOut.includes(name)) continue;
    const place = packageFolder(folder, name);
    await mkdir(join(place, "bins"), { recursive: true });
    const manifest = { name: `@node-llama-cpp/${name}`, version, type: "module", exports: "./index.js" };
    await writeFile(join(place, "package.json"), JSON.stringify(manifest));
    const mark =
      marker === undefined ? "" : `appendFileSync(${JSON.stringify(marker)}, ${JSON.stringify(`${name}\n`)});`;
    const bins = { binsDir: join(place, "bins"), packageVersion: version };
    await writeFile(
      join(place, "index.js"),
      `import { appendFileSync } from "node:fs";
export function getBinsDir() { ${mark} return ${JSON.stringify(bins)}; }
`,
    );
  }
  return folder;
}
