import { testBackend } from "../ports/backend.suite.ts";
import { ScriptedBackend, scriptedModel, textAnswer } from "./scripted-backend.ts";

testBackend({
  name: "scripted",
  chatModel: "m",
  embeddingModel: "e",
  endless: { sampling: { seed: 1 } },
  create: async () => {
    const backend = new ScriptedBackend("b", [scriptedModel("m"), scriptedModel("e")]);
    const brief = textAnswer(["Hel", "lo"]);
    backend.answer = async function* (request, signal) {
      yield* brief(request, signal);
      if (request.sampling.seed === 1)
        await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
    };
    return backend;
  },
});
