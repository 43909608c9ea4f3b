// npm run openapi: writes docs/openapi.json from the schemas that check requests. A test fails when it is behind.
import { writeFile } from "node:fs/promises";

const { createOpenapiDocument } = await import("../packages/server/src/doors/lmsp/openapi/index.ts");
await writeFile(
  new URL("../docs/openapi.json", import.meta.url),
  `${JSON.stringify(createOpenapiDocument(), null, 2)}\n`,
);
