import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { ClientReader } from "./client-facts.ts";

function request(remoteAddress: string, headers: Record<string, string>, encrypted = false) {
  return { headers, socket: { remoteAddress, encrypted } } as unknown as Pick<IncomingMessage, "headers" | "socket">;
}

const forwarded = {
  host: "inside:7411",
  "x-forwarded-for": "203.0.113.7",
  "x-forwarded-proto": "https",
  "x-forwarded-host": "models.example",
};

describe("who asks", () => {
  it.each([
    ["without trusted proxies", []],
    ["from elsewhere", ["10.0.0.0/8", "::1"]],
  ])("%s nothing that was forwarded is believed", (_name, proxies) => {
    expect(new ClientReader(proxies).read(request("192.0.2.1", forwarded))).toEqual({
      address: "192.0.2.1",
      host: "inside:7411",
      isSecure: false,
    });
  });

  it.each(["10.1.2.3", "::ffff:10.1.2.3", "::1"])("from the proxy %s it is", (address) => {
    expect(new ClientReader(["10.0.0.0/8", "::1"]).read(request(address, forwarded))).toEqual({
      address: "203.0.113.7",
      host: "models.example",
      isSecure: true,
    });
  });

  it("what the proxy does not say stays as the connection has it", () => {
    expect(new ClientReader(["10.0.0.1"]).read(request("10.0.0.1", { host: "h" }, true))).toEqual({
      address: "10.0.0.1",
      host: "h",
      isSecure: true,
    });
  });

  it.each([
    ["6.6.6.6, 203.0.113.7", "203.0.113.7", "what the client made up itself"],
    ["203.0.113.7, 10.0.0.9", "203.0.113.7", "a row of proxies"],
    ["10.0.0.8, 10.0.0.9", "10.0.0.8", "a client among the proxies"],
    ["203.0.113.7:5555", "203.0.113.7", "a port"],
    ["[2001:db8::1]:443", "2001:db8::1", "IPv6 with a port"],
    ["2001:db8::1", "2001:db8::1", "IPv6"],
    ["203.0.113.7, unknown", "10.0.0.1", "no address"],
    ["", "10.0.0.1", "an empty row"],
  ])("of '%s' the client is %s: %s", (row, address) => {
    const reader = new ClientReader(["10.0.0.0/24"]);
    expect(reader.read(request("10.0.0.1", { "x-forwarded-for": row })).address).toBe(address);
  });

  it("of several values the nearest proxy's counts", () => {
    const reader = new ClientReader(["10.0.0.0/24"]);
    const headers = { "x-forwarded-proto": "https, http", "x-forwarded-host": "evil.example, models.example" };
    expect(reader.read(request("10.0.0.1", headers))).toMatchObject({ host: "models.example", isSecure: false });
  });
});
