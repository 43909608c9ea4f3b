// Writes docs/reference/plenum.config.schema.json from the configuration's schema.
//   node --conditions=@plenum/source --import tsx scripts/config-schema.mjs
import { writeFile } from "node:fs/promises";
import { configJsonSchema } from "../packages/server/src/config/known-options.ts";

const target = new URL("../docs/reference/plenum.config.schema.json", import.meta.url);
await writeFile(target, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
console.log("docs/reference/plenum.config.schema.json is written.");
