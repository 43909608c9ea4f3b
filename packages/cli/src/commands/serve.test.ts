import { expect, test } from "vitest";
import { announcement } from "../serve/announce.ts";

const facts = {
  server: {
    url: "http://127.0.0.1:7411",
    interfaces: [
      { kind: "lmsp", url: "http://127.0.0.1:7411/lmsp/v1" },
      { kind: "openai", url: "http://127.0.0.1:7411/v1" },
      { kind: "ollama", url: "http://127.0.0.1:7411" },
    ],
  },
  config: { models: "/home/ada/.plenum/models", name: "studio" },
  version: "1.2.3",
};

test("says where it is, what to try and what comes next", () => {
  expect(announcement({ ...facts, model: "smollm2:135m", needsToken: false })).toBe(`Plenum 1.2.3 runs as "studio".

  LMSP    http://127.0.0.1:7411/lmsp/v1
  OpenAI  http://127.0.0.1:7411/v1
  Ollama  http://127.0.0.1:7411

Try it:
  curl http://127.0.0.1:7411/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"smollm2:135m","messages":[{"role":"user","content":"Say hello."}]}'

Next:
  plenum models                 what it can run
  plenum run smollm2:135m       chat in this terminal
  more models                   put GGUF files into /home/ada/.plenum/models
  Ctrl-C                        stop
`);
});

test("names no model and asks for a token where tokens are needed", () => {
  const text = announcement({ ...facts, model: undefined, needsToken: true });
  expect(text).toContain('-H "Authorization: Bearer $PLENUM_TOKEN"');
  expect(text).toContain('"model":"MODEL"');
});
