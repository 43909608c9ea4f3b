// npm run graph: draws how the rooms import each other into ARCHITECTURE.md.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { root } from "./lib/prepare.mjs";

const page = `${root}/ARCHITECTURE.md`;
const begin = "<!-- graph: made by `npm run graph` -->\n";
const end = "<!-- end of graph -->";

/** The room of a file: a package, or a folder inside the server. */
function roomOf(file) {
  const [, name, , folder, subfolder] = file.split("/");
  if (name !== "server") return name;
  if (folder === undefined || folder.includes(".")) return "server.ts";
  return folder === "doors" || folder === "backends" ? `${folder}/${subfolder}` : folder;
}

const cruise = `${root}/node_modules/dependency-cruiser/bin/dependency-cruise.mjs`;
const argv = [cruise, "packages", "--config", ".dependency-cruiser.cjs", "--output-type", "json"];
const report = JSON.parse(execFileSync(process.execPath, argv, { cwd: root, encoding: "utf8", maxBuffer: 1e9 }));

const arrows = new Set();
for (const { source, dependencies } of report.modules) {
  if (!source.startsWith("packages/") || /\.test\.ts$|\/testing\//.test(source)) continue;
  for (const { resolved } of dependencies) {
    if (!resolved.startsWith("packages/")) continue;
    const [from, to] = [roomOf(source), roomOf(resolved)];
    if (from !== to) arrows.add(`  ${nodeOf(from)} --> ${nodeOf(to)}`);
  }
}

function nodeOf(room) {
  return `${room.replaceAll(/[^a-z]/g, "_")}["${room}"]`;
}

const graph = `\`\`\`mermaid\nflowchart TD\n${[...arrows].sort().join("\n")}\n\`\`\`\n`;
const text = readFileSync(page, "utf8");
writeFileSync(page, text.slice(0, text.indexOf(begin) + begin.length) + graph + text.slice(text.indexOf(end)));
