import { describe, expect, it } from "vitest";
import { isAllowedHost, isAllowedOrigin } from "./host-check.ts";

const rules = { hosts: ["models.example"], corsOrigins: ["https://app.example"] };

describe("hosts", () => {
  it.each([
    ["127.0.0.1:7411", true],
    ["localhost", true],
    ["LOCALHOST:80", true],
    ["[::1]:7411", true],
    ["192.168.1.5:7411", true],
    ["studio.local", true],
    ["models.example:443", true],
    ["evil.example", false],
    ["127.0.0.1.evil.example", false],
    ["localhost.evil.example", false],
    ["evil.example:7411", false],
    ["a@127.0.0.1", false],
    ["", false],
    [undefined, false],
  ])("%s: %s", (host, allowed) => {
    expect(isAllowedHost(host, rules)).toBe(allowed);
  });
});

describe("origins", () => {
  it.each([
    ["http://localhost:3000", true],
    ["http://127.0.0.1", true],
    ["http://[::1]:5173", true],
    ["https://app.example", true],
    ["app://obsidian.md", true],
    ["tauri://localhost", true],
    ["vscode-webview://abc", true],
    ["file://", true],
    ["http://192.168.1.5:7411", true],
    ["http://192.168.1.6:7411", false],
    ["https://evil.example", false],
    ["http://localhost.evil.example", false],
    ["https://app.example.evil.example", false],
    ["null", false],
  ])("%s: %s", (origin, allowed) => {
    expect(isAllowedOrigin(origin, "192.168.1.5:7411", rules)).toBe(allowed);
  });

  it("any, when told so", () => {
    expect(isAllowedOrigin("https://evil.example", undefined, { hosts: [], corsOrigins: ["*"] })).toBe(true);
  });
});
