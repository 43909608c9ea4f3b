import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Where the synthetic upstream listens. */
export const upstreamUrl = "http://127.0.0.1:9100";

/** A server in front of the upstream. */
export interface TargetSpec {
  readonly name: string;
  readonly url: string;
  /** Absent: the upstream itself. */
  readonly start?: (scratch: string) => Promise<{ readonly command: readonly string[]; readonly cwd?: string }>;
  /** Headers of every request. */
  readonly headers: readonly string[];
  /** Workloads that it can't do. */
  readonly skips: readonly string[];
}

const ownApis = ["ollama", "lmsp"];
const token = "bench-token";

/**
 * @param root the checkout, with a built product
 * @param portkey folder in which the gateway is installed
 */
export function targets(root: string, portkey: string): readonly TargetSpec[] {
  return [
    { name: "direct", url: upstreamUrl, headers: [], skips: [...ownApis, "cancel", "idle"] },
    {
      name: "nginx",
      url: "http://127.0.0.1:9101",
      headers: [],
      skips: ownApis,
      async start(scratch) {
        await writeFile(join(scratch, "nginx.conf"), nginxConf);
        return { command: ["nginx", "-p", scratch, "-c", join(scratch, "nginx.conf")] };
      },
    },
    {
      name: "portkey",
      url: "http://127.0.0.1:9102",
      headers: [
        "x-portkey-provider: openai",
        `x-portkey-custom-host: ${upstreamUrl}/v1`,
        "Authorization: Bearer of-no-meaning",
      ],
      skips: ownApis,
      start: async () => ({
        command: ["node", "node_modules/@portkey-ai/gateway/build/start-server.js", "--headless", "--port=9102"],
        cwd: portkey,
      }),
    },
    {
      name: "plenum",
      url: "http://127.0.0.1:9104",
      headers: [`Authorization: Bearer ${token}`],
      skips: [],
      async start(scratch) {
        const file = join(scratch, "plenum.config.yaml");
        await writeFile(file, JSON.stringify(plenumConfig));
        return { command: ["node", join(root, "packages/cli/bin/plenum.mjs"), "serve", "--config", file] };
      },
    },
  ];
}

/** Nothing of the path is left out: token, validation, event log, metrics. JSON is YAML, too. */
const plenumConfig = {
  home: "home",
  port: 9104,
  starter_model: false,
  find_local_runtimes: false,
  embedded: { enabled: false },
  log: { level: "warn" },
  limits: { request_bytes: 67_108_864 },
  runtimes: { upstream: { kind: "openai-compatible", url: upstreamUrl, parallel: 8_192 } },
  auth: {
    tokens: [
      {
        principal: "bench",
        token_sha256: createHash("sha256").update(token).digest("hex"),
        scopes: ["read", "infer"],
      },
    ],
  },
};

/** A pass-through of bytes: the floor for everything that reads what it carries. */
const nginxConf = `
worker_processes 1;
worker_rlimit_nofile 65536;
daemon off;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  tcp_nodelay on;
  keepalive_requests 1000000;
  upstream model { server ${upstreamUrl.slice("http://".length)}; keepalive 512; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:9101 backlog=4096;
    location / {
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 3600s;
    }
  }
}
`;
