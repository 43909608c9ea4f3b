"""The official `ollama` package from PyPI, unmodified, against a running service. How it is called: checks.py."""

import asyncio

import httpx
import ollama
from ollama import AsyncClient, Client, ResponseError

from checks import CITY, PERSON, check, city_of, main, person_of, raised, sane_vectors

HELLO = [{"role": "user", "content": "Say hello."}]
STORY = [{"role": "user", "content": "Write a very long story."}]
# An answer that a check interrupts can't end before: this client knows no other way to bar the end.
ENDLESS = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 500}
GREEDY = {"num_predict": 16, "temperature": 0}
LONG = {"num_predict": 4000}


def get_weather(city: str) -> str:
    """
    The weather of a city.

    Args:
        city: Name of the city

    Returns:
        The weather in words
    """
    return f"Sunny in {city}."


def client_of(service, **settings):
    return Client(host=service.url, **settings)


@check
def lists_models(service):
    models = client_of(service).list().models
    names = [model.model for model in models]
    assert service.chat_model in names, names
    assert any(name.split(":")[0] == service.embedding_model for name in names), names
    assert len({model.digest for model in models}) == len(models), models
    assert all(model.size > 0 and model.modified_at and model.details.family for model in models), models


@check
def shows_a_model(service):
    shown = client_of(service).show(service.chat_model)
    assert "completion" in shown.capabilities, shown.capabilities
    assert shown.details.family and shown.template, shown
    assert shown.modelinfo["general.architecture"] == "llama", shown.modelinfo
    assert "embedding" in client_of(service).show(service.embedding_model).capabilities


@check
def tells_what_is_loaded(service):
    client_of(service).chat(model=service.chat_model, messages=HELLO, options={"num_predict": 1})
    loaded = client_of(service).ps().models
    assert service.chat_model in [model.model for model in loaded], loaded
    assert all(model.expires_at for model in loaded), loaded


@check
def chats(service):
    answer = client_of(service).chat(model=service.chat_model, messages=HELLO, options=GREEDY)
    assert answer.done and answer.done_reason in ("stop", "length"), answer
    assert answer.model == service.chat_model and answer.created_at, answer
    assert answer.message.role == "assistant" and len(answer.message.content) > 2, answer
    assert answer.eval_count > 0 and answer.prompt_eval_count > 0 and answer.total_duration > 0, answer
    return repr(answer.message.content)


@check
def streams_the_same_text(service):
    request = {"model": service.chat_model, "messages": HELLO, "options": GREEDY}
    whole = client_of(service).chat(**request)
    parts = list(client_of(service).chat(**request, stream=True))
    text = "".join(part.message.content for part in parts)
    assert text == whole.message.content, (text, whole.message.content)
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True], parts
    assert parts[-1].done_reason == whole.done_reason and parts[-1].eval_count == whole.eval_count, parts[-1]
    return f"{len(parts)} lines"


@check
def generates_whole_and_streamed(service):
    request = {"model": service.chat_model, "prompt": "Say hello.", "options": GREEDY}
    whole = client_of(service).generate(**request)
    text = "".join(part.response for part in client_of(service).generate(**request, stream=True))
    assert whole.response and whole.done, whole
    assert text == whole.response, (text, whole.response)
    chat = client_of(service).chat(model=service.chat_model, messages=HELLO, options=GREEDY)
    assert chat.message.content == text, (chat.message.content, text)


@check
def tells_log_probabilities(service):
    answer = client_of(service).chat(
        model=service.chat_model, messages=HELLO, logprobs=True, top_logprobs=3, options=GREEDY
    )
    assert len(answer.logprobs) >= 3, answer
    for entry in answer.logprobs:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 3, entry
        assert entry.token == entry.top_logprobs[0].token, entry


@check
def chats_async(service):
    async def run():
        async with AsyncClient(host=service.url) as client:
            answers = [client.chat(model=service.chat_model, messages=HELLO, options=GREEDY) for _ in range(4)]
            return [answer.message.content for answer in await asyncio.gather(*answers)]

    texts = asyncio.run(run())
    assert len(set(texts)) == 1 and texts[0], texts


@check
def answers_by_a_schema(service):
    answer = client_of(service).chat(
        model=service.chat_model,
        messages=[{"role": "user", "content": "Give me a person as JSON."}],
        format=PERSON,
        options={"temperature": 0},
    )
    return person_of(answer.message.content)


@check
def generates_by_a_schema_in_a_stream(service):
    parts = client_of(service).generate(
        model=service.chat_model, prompt="A person as JSON.", format=PERSON, options={"temperature": 0}, stream=True
    )
    return person_of("".join(part.response for part in parts))


@check
def fills_a_call_by_a_schema(service):
    # This client can't force a tool: its chat() has no tool_choice. What it offers instead is the call's own schema.
    call = {
        "type": "object",
        "properties": {"name": {"const": "get_weather"}, "arguments": CITY},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    answer = client_of(service).chat(
        model=service.chat_model,
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        format=call,
        options={"temperature": 0},
    )
    filled = ollama.Message.ToolCall.Function.model_validate_json(answer.message.content)
    assert filled.name == "get_weather", filled
    return city_of(filled.arguments)


@check
def takes_tools(service):
    # The starter model answers with text or makes a call of its own: both must be well formed.
    answer = client_of(service).chat(
        model=service.chat_model,
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        tools=[get_weather],
        options=GREEDY,
    )
    calls = answer.message.tool_calls or []
    assert answer.message.content or calls, answer
    assert all(call.function.name == "get_weather" for call in calls), calls
    return f"{len(calls)} calls, {answer.message.content!r}"


@check
def goes_on_after_a_tool(service):
    call = {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
    answer = client_of(service).chat(
        model=service.chat_model,
        messages=[
            {"role": "user", "content": "What is the weather in Paris?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "get_weather", "content": get_weather("Paris")},
        ],
        tools=[get_weather],
        options=GREEDY,
    )
    assert answer.message.content or answer.message.tool_calls, answer


@check
def embeds(service):
    answer = client_of(service).embed(model=service.embedding_model, input=["a cat", "a kitten", "a railway"])
    assert answer.model == service.embedding_model and answer.prompt_eval_count > 0, answer.model
    return sane_vectors(*answer.embeddings)


@check
def embeds_by_the_older_call(service):
    older = client_of(service).embeddings(model=service.embedding_model, prompt="a cat").embedding
    newer = client_of(service).embed(model=service.embedding_model, input="a cat").embeddings[0]
    scale = sum(x * x for x in older) ** 0.5
    cosine = sum(x * y for x, y in zip(older, newer)) / scale
    assert cosine > 0.9999, cosine


@check
def abort_in_a_stream_frees_the_slot(service):
    stream = client_of(service).chat(model=service.chat_model, messages=STORY, options=LONG, format=ENDLESS, stream=True)
    next(stream)
    assert service.running() == 1, service.running()
    stream.close()
    return f"free after {service.wait_until_free()} ms"


@check
def abort_before_the_answer_frees_the_slot(service):
    async def run():
        async with AsyncClient(host=service.url) as client:
            task = asyncio.create_task(client.chat(model=service.chat_model, messages=STORY, options=LONG, format=ENDLESS))
            await asyncio.to_thread(service.wait_until_busy)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task

    asyncio.run(run())
    return f"free after {service.wait_until_free()} ms"


@check
def timeout_of_the_client_frees_the_slot(service):
    client = client_of(service, timeout=1.0)
    # This client passes on the exception of the HTTP library that it is built on.
    raised(httpx.ReadTimeout, lambda: client.chat(model=service.chat_model, messages=STORY, options=LONG, format=ENDLESS))
    return f"free after {service.wait_until_free()} ms"


@check
def error_unknown_model(service):
    client = client_of(service)
    for call in (
        lambda: client.chat(model="nope", messages=HELLO),
        lambda: next(client.chat(model="nope", messages=HELLO, stream=True)),
        lambda: client.generate(model="nope", prompt="x"),
        lambda: client.show("nope"),
        lambda: client.embed(model="nope", input="x"),
    ):
        error = raised(ResponseError, call)
        assert error.status_code == 404 and "nope" in error.error, error
    return error.error


@check
def error_context_overflow(service):
    client = client_of(service)
    long = [{"role": "user", "content": "word " * 20_000}]
    for call in (
        lambda: client.chat(model=service.chat_model, messages=long),
        lambda: next(client.chat(model=service.chat_model, messages=long, stream=True)),
    ):
        error = raised(ResponseError, call)
        assert error.status_code == 400 and "context length" in error.error, error
    return error.error


@check
def error_wrong_type(service):
    # The client passes options and schemas on as they are. Ollama answers a wrong type in options with 500.
    chat = client_of(service).chat
    for settings in ({"options": {"temperature": "hot"}}, {"options": {"stop": 5}}, {"format": {"type": "yaml"}}):
        error = raised(ResponseError, lambda: chat(model=service.chat_model, messages=HELLO, **settings))
        assert error.status_code in (400, 500) and error.error, error
    error = raised(
        ResponseError, lambda: chat(model=service.chat_model, messages=HELLO, options={"temperature": 9})
    )
    assert error.status_code == 400 and "temperature" in error.error, error
    return error.error


@check
def error_unsupported(service):
    client = client_of(service)
    error = raised(ResponseError, lambda: client.embed(model=service.chat_model, input="x"))
    assert error.status_code == 400 and "does not support embeddings" in error.error, error
    error = raised(ResponseError, lambda: client.chat(model=service.embedding_model, messages=HELLO))
    assert error.status_code == 400 and "does not support chat" in error.error, error
    error = raised(ResponseError, lambda: client.push("nope"))
    assert error.status_code == 404, error
    error = raised(ResponseError, lambda: client.pull("nope"))
    assert error.status_code == 500 and "pull" in error.error, error
    return error.error


if __name__ == "__main__":
    main("ollama")
