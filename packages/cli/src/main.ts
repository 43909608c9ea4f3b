import { processSurroundings } from "./process-surroundings.ts";
import { runProgram } from "./program.ts";

// Not process.exit: what is still on its way to a pipe would be lost.
process.exitCode = await runProgram(process.argv.slice(2), processSurroundings());
