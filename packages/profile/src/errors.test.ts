import { expect, it } from "vitest";
import { errorOfStatus, profileError, profileErrors, readError, statusOfError } from "./errors.ts";

it("every known code keeps its status, also when a peer says 500 for all", () => {
  for (const [code, { type, status }] of Object.entries(profileErrors)) {
    expect(statusOfError({ type, code })).toBe(status);
    expect(statusOfError({ type, code }, 500)).toBe(status);
    expect(statusOfError({ type, code }, 200)).toBe(status);
  }
});

it("an unknown code has the status it came with, or that of its type", () => {
  expect(statusOfError({ type: "server_error", code: "own" }, 507)).toBe(507);
  expect(statusOfError({ type: "rate_limit_error", code: "own" })).toBe(429);
  expect(statusOfError({ type: "rate_limit_error", code: "constructor" }, 500)).toBe(429);
  expect(statusOfError({ type: "other", code: "own" })).toBe(500);
  expect(statusOfError({ type: "other", code: "own" }, 700)).toBe(500);
});

it.each([400, 401, 403, 404, 409, 413, 429, 499, 502, 503, 504, 500])(
  "a bare status %i becomes an error of it",
  (status) => {
    const error = errorOfStatus(status, "x");
    expect(statusOfError(error)).toBe(status);
  },
);

it("reads errors of peers", () => {
  const error = profileError("missing_messages", "x", "messages");
  expect(readError(error)).toBe(error);
  expect(readError({ message: "x", type: null, code: null, param: null })).toEqual({
    type: "server_error",
    code: "internal_error",
    message: "x",
  });
  expect(readError("x")).toBeUndefined();
  expect(readError([])).toBeUndefined();
});
