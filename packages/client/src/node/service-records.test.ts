import { EventEmitter } from "node:events";
import fc from "fast-check";
import makeMulticast from "multicast-dns";
import { describe, expect, test } from "vitest";
import { guard } from "./multicast.ts";
import { ServiceRecords, serviceType } from "./service-records.ts";
import { announcement, serviceId } from "./testing/packets.ts";

const sighting = {
  instance: "studio",
  port: 7411,
  addresses: ["10.0.0.7"],
  txt: { version: "1.0", id: serviceId, tls: false, auth: "none", kinds: ["lmsp"] },
};

test("a service is seen when all of its records are there, in any order and any packets", () => {
  const { answers } = announcement();
  for (const order of [answers, answers.toReversed()]) {
    const records = new ServiceRecords();
    records.take({ answers: order }, 0);
    expect(records.sightings(0)).toEqual([sighting]);
  }
  const records = new ServiceRecords();
  for (const [place, answer] of answers.entries()) {
    expect(records.sightings(0)).toEqual([]);
    records.take(place % 2 === 0 ? { answers: [answer] } : { additionals: [answer] }, 0);
  }
  expect(records.sightings(0)).toEqual([sighting]);
});

test("names are the same in any case", () => {
  const records = new ServiceRecords();
  const [pointer, ...others] = announcement().answers;
  records.take({ answers: pointer === undefined ? [] : [{ ...pointer, name: "_LMSP._TCP.local" }] }, 0);
  records.take({ answers: others.map((answer) => ({ ...answer, name: answer.name.toUpperCase() })) }, 0);
  expect(records.sightings(0)).toHaveLength(1);
});

describe("it goes", () => {
  test("by a goodbye", () => {
    const records = new ServiceRecords();
    records.take(announcement(), 0);
    records.take(announcement({ ttl: 0 }), 1);
    expect(records.sightings(1)).toEqual([]);
  });

  test("when its records were not renewed, about which it is asked before", () => {
    const records = new ServiceRecords();
    records.take(announcement(), 0);
    expect(records.questions(90_000)).toEqual([]);
    expect(records.questions(100_000).map(({ type }) => type)).toEqual(["SRV", "A", "AAAA"]);
    expect(records.sightings(119_999)).toHaveLength(1);
    expect(records.sightings(120_000)).toEqual([]);
    expect(records.questions(120_000).map(({ type }) => type)).toEqual(["SRV"]);
  });

  test("not while they are", () => {
    const records = new ServiceRecords();
    for (let atMs = 0; atMs < 1_000_000; atMs += 100_000) records.take(announcement(), atMs);
    expect(records.sightings(1_000_000)).toHaveLength(1);
  });
});

test("a changed address takes the place of the old one", () => {
  const records = new ServiceRecords();
  records.take(announcement(), 0);
  records.take(announcement({ addresses: ["10.0.0.8", "fd00::8"] }), 5_000);
  expect(records.sightings(5_000)[0]?.addresses).toEqual(["10.0.0.8", "fd00::8"]);
});

test("what one network tells just after another is kept beside it", () => {
  const records = new ServiceRecords();
  records.take(announcement(), 0);
  records.take(announcement({ addresses: ["10.0.1.7"] }), 500);
  expect(records.sightings(500)[0]?.addresses).toEqual(["10.0.0.7", "10.0.1.7"]);
});

test.each(["127.0.0.1", "0.0.0.0", "224.0.0.251", "255.255.255.255", "::1", "fe80::1", "ff02::fb", "::ffff:127.0.0.1"])(
  "%s is nobody's address, and takes none away",
  (address) => {
    const records = new ServiceRecords();
    records.take(announcement({ addresses: [address] }), 0);
    expect(records.sightings(0)).toEqual([]);
    records.take(announcement(), 0);
    records.take(announcement({ addresses: [address] }), 5_000);
    expect(records.sightings(5_000)).toEqual([sighting]);
  },
);

test("records of other services are passed over", () => {
  const records = new ServiceRecords();
  const answers = announcement().answers.map((answer) => {
    const rename = (name: string) => name.replace("_lmsp", "_http");
    return answer.type === "PTR" ? { ...answer, name: rename(answer.name), data: rename(answer.data) } : answer;
  });
  records.take({ answers }, 0);
  expect(records.sightings(0)).toEqual([]);
  expect(records.questions(0)).toEqual([]);
});

test("a service of another kind of TXT is none", () => {
  const records = new ServiceRecords();
  records.take(announcement({ txt: { version: "2.0" } }), 0);
  expect(records.sightings(0)).toEqual([]);
});

test("control characters of a name reach nobody", () => {
  const records = new ServiceRecords();
  records.take(announcement({ instance: "\u001b[31mstudio\u0007" }), 0);
  expect(records.sightings(0)[0]?.instance).toBe("[31mstudio");
});

test("a flood is bounded, and those who were there before stay", () => {
  const records = new ServiceRecords();
  records.take(announcement(), 0);
  for (let place = 0; place < 2_000; place += 1) {
    const addresses = Array.from({ length: 40 }, (_, last) => `10.1.${place % 256}.${last + 1}`);
    records.take(announcement({ instance: `s${place}`, host: `h${place}.local`, addresses }), 0);
  }
  const seen = records.sightings(0);
  expect(seen.length).toBeLessThanOrEqual(256);
  expect(Math.max(...seen.map(({ addresses }) => addresses.length))).toBeLessThanOrEqual(16);
  expect(seen.map(({ instance }) => instance)).toContain("studio");
  expect(records.questions(0).length).toBeLessThanOrEqual(32);
});

test("known answers are told while they have half of their life left", () => {
  const records = new ServiceRecords();
  records.take(announcement(), 0);
  expect(records.knownAnswers(1_000)).toEqual([
    { type: "PTR", name: serviceType, ttl: 4_499, data: `studio.${serviceType}` },
  ]);
  expect(records.knownAnswers(2_300_000)).toEqual([]);
});

/** A socket without a network, and the bytes that would be sent. */
class DeafSocket extends EventEmitter {
  sent: Uint8Array | undefined;
  bind(_port: number, _address: string, done: () => void) {
    done();
  }
  send(bytes: Uint8Array) {
    this.sent = bytes;
  }
  close() {}
}

test("packets that are none, or broken, change nothing and throw nothing", async () => {
  const socket = new DeafSocket();
  guard(socket);
  const mdns = makeMulticast({ socket: socket as never, multicast: false });
  const records = new ServiceRecords();
  let warnings = 0;
  mdns.on("warning", () => {
    warnings += 1;
  });
  mdns.on("response", (packet) => records.take(packet, 0));
  mdns.respond({ answers: [...announcement().answers] });
  await expect.poll(() => socket.sent?.length ?? 0).toBeGreaterThan(100);
  const whole = Buffer.from(socket.sent ?? []);
  socket.emit("message", whole, {});
  expect(records.sightings(0)).toHaveLength(1);
  // A name that points at itself.
  socket.emit(
    "message",
    Buffer.from([0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 12]),
    {},
  );
  const cuts = fc.nat(whole.length);
  const edits = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 });
  fc.assert(
    fc.property(cuts, edits, fc.uint8Array({ maxLength: 64 }), (cut, changes, noise) => {
      const bytes = Buffer.from(whole);
      for (const [place, value] of changes) bytes[place] = value;
      socket.emit("message", bytes.subarray(0, cut), {});
      socket.emit("message", bytes, {});
      socket.emit("message", Buffer.from(noise), {});
      records.sightings(0);
      records.questions(0);
    }),
    { numRuns: 500 },
  );
  expect(warnings).toBeGreaterThan(0);
  const costly = Buffer.alloc(9_000);
  costly[2] = 0x84;
  costly.fill(0xff, 4, 12);
  const before = performance.now();
  for (let round = 0; round < 1_000; round += 1) socket.emit("message", costly, {});
  process.stdout.write(
    `measured: 1000 packets that promise 262140 records: ${(performance.now() - before).toFixed(1)} ms\n`,
  );
  mdns.destroy();
});
