import { readFile } from "node:fs/promises";
import { exitCodes } from "../../exit-codes.ts";
import { CommandError } from "../../report-error.ts";
import { SuiteFileError } from "./profile-case.ts";

/**
 * Reads a file of a person or a suite.
 * @throws CommandError that names the file, and the member where one is wrong.
 */
export async function readJsonFile<T>(path: string, read: (value: unknown) => T): Promise<T> {
  const text = await readFile(path, "utf8");
  try {
    return read(JSON.parse(text));
  } catch (error) {
    if (error instanceof SuiteFileError) throw new CommandError(`${path}: ${error.message}`, exitCodes.usage);
    if (error instanceof SyntaxError) throw new CommandError(`${path} is no JSON.`, exitCodes.usage);
    throw error;
  }
}
