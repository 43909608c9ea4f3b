"""The official `openai` package from PyPI, unmodified, against a running service. How it is called: checks.py."""

import asyncio
import json

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from checks import CITY, PERSON, check, city_of, dot, main, person_of, raised, sane_vectors

HELLO = [{"role": "user", "content": "Say hello."}]
STORY = [{"role": "user", "content": "Write a very long story."}]
# Bars the starter model's end tokens: an answer that a check interrupts can't end before.
ENDLESS = {"max_tokens": 4000, "logit_bias": {"0": -100, "2": -100}}
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather of a city", "parameters": CITY, "strict": True},
}
# Responses has flatter forms.
PERSON_FORMAT = {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}
WEATHER_FUNCTION = {"type": "function", **WEATHER_TOOL["function"]}
GREEDY = {"max_tokens": 16, "temperature": 0}


class Person(BaseModel):
    name: str
    age: int


def client_of(service, **settings):
    return OpenAI(base_url=f"{service.url}/v1", api_key="any", max_retries=0, **settings)


@check
def lists_models(service):
    page = client_of(service).models.list()
    ids = [model.id for model in page]
    assert service.chat_model in ids and service.embedding_model in ids, ids
    assert all(model.object == "model" and model.created > 0 and model.owned_by for model in page.data), page


@check
def retrieves_a_model(service):
    model = client_of(service).models.retrieve(service.chat_model)
    assert model.id == service.chat_model and model.object == "model", model


@check
def chats(service):
    answer = client_of(service).chat.completions.create(model=service.chat_model, messages=HELLO, **GREEDY)
    choice = answer.choices[0]
    assert answer.object == "chat.completion" and answer.model == service.chat_model, answer
    assert choice.message.role == "assistant" and len(choice.message.content) > 2, choice
    assert choice.finish_reason in ("stop", "length"), choice
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    return repr(choice.message.content)


@check
def streams_the_same_text(service):
    request = {"model": service.chat_model, "messages": HELLO, **GREEDY}
    whole = client_of(service).chat.completions.create(**request)
    chunks = list(
        client_of(service).chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content, (text, whole.choices[0].message.content)
    assert chunks[0].choices[0].delta.role == "assistant", chunks[0]
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert [reason for reason in reasons if reason] == [whole.choices[0].finish_reason], reasons
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens, chunks[-1]
    assert len({chunk.id for chunk in chunks}) == 1, chunks
    return f"{len(chunks)} chunks"


@check
def streams_through_the_helper(service):
    response_format = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    with client_of(service).chat.completions.stream(
        model=service.chat_model, messages=HELLO, response_format=response_format, temperature=0
    ) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    assert text == final.choices[0].message.content, (text, final)
    return person_of(text)


@check
def helper_tells_an_answer_that_was_cut(service):
    def cut():
        with client_of(service).chat.completions.stream(
            model=service.chat_model, messages=STORY, max_tokens=3
        ) as stream:
            stream.until_done()
            stream.get_final_completion()

    raised(openai.LengthFinishReasonError, cut)


@check
def tells_log_probabilities(service):
    answer = client_of(service).chat.completions.create(
        model=service.chat_model, messages=HELLO, logprobs=True, top_logprobs=3, **GREEDY
    )
    entries = answer.choices[0].logprobs.content
    assert len(entries) >= 3, entries
    for entry in entries:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 3, entry
        # Temperature 0 takes the likeliest.
        assert entry.token == entry.top_logprobs[0].token, entry
    joined = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert answer.choices[0].message.content in joined, (joined, answer.choices[0].message.content)


@check
def chats_async(service):
    async def run():
        async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="any", max_retries=0) as client:
            create = client.chat.completions.create
            answers = [create(model=service.chat_model, messages=HELLO, **GREEDY) for _ in range(4)]
            return [answer.choices[0].message.content for answer in await asyncio.gather(*answers)]

    texts = asyncio.run(run())
    assert len(set(texts)) == 1 and texts[0], texts


@check
def answers_by_a_schema(service):
    answer = client_of(service).chat.completions.create(
        model=service.chat_model,
        messages=[{"role": "user", "content": "Give me a person as JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}},
        temperature=0,
    )
    return person_of(answer.choices[0].message.content)


@check
def parses_into_a_class(service):
    answer = client_of(service).chat.completions.parse(
        model=service.chat_model,
        messages=[{"role": "user", "content": "Give me a person as JSON."}],
        response_format=Person,
        temperature=0,
        max_tokens=400,
    )
    person = answer.choices[0].message.parsed
    assert isinstance(person, Person), answer
    return repr(person)


@check
def calls_a_tool_when_required(service):
    answer = client_of(service).chat.completions.create(
        model=service.chat_model,
        messages=WEATHER,
        tools=[WEATHER_TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
    )
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls" and len(choice.message.tool_calls) == 1, choice
    call = choice.message.tool_calls[0]
    assert call.id and call.type == "function" and call.function.name == "get_weather", call
    return city_of(json.loads(call.function.arguments))


@check
def calls_a_named_tool_in_a_stream(service):
    other = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
    stream = client_of(service).chat.completions.create(
        model=service.chat_model,
        messages=WEATHER,
        tools=[other, WEATHER_TOOL],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
        temperature=0,
        stream=True,
    )
    ids, names, arguments, reasons = [], [], "", []
    for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or []:
            ids.append(call.id)
            names.append(call.function.name)
            arguments += call.function.arguments or ""
        reasons.append(chunk.choices[0].finish_reason)
    assert [name for name in names if name] == ["get_weather"], names
    assert len([call_id for call_id in ids if call_id]) == 1, ids
    assert reasons[-1] == "tool_calls", reasons
    return city_of(json.loads(arguments))


@check
def goes_on_after_a_tool(service):
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    answer = client_of(service).chat.completions.create(
        model=service.chat_model,
        messages=[
            *WEATHER,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 degrees."},
        ],
        tools=[WEATHER_TOOL],
        tool_choice="none",
        **GREEDY,
    )
    assert answer.choices[0].message.content and not answer.choices[0].message.tool_calls, answer
    return repr(answer.choices[0].message.content)


@check
def responses_whole(service):
    answer = client_of(service).responses.create(
        model=service.chat_model, input="Say hello.", max_output_tokens=16, temperature=0
    )
    assert answer.object == "response" and answer.status in ("completed", "incomplete"), answer
    assert len(answer.output_text) > 2 and answer.usage.output_tokens > 0, answer
    return repr(answer.output_text)


@check
def responses_streamed(service):
    request = {"model": service.chat_model, "input": "Say hello.", "max_output_tokens": 16, "temperature": 0}
    whole = client_of(service).responses.create(**request)
    events = list(client_of(service).responses.create(**request, stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text, (text, whole.output_text)
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    assert events[0].type == "response.created", events[0]
    assert events[-1].type == f"response.{whole.status}" and events[-1].response.output_text == text, events[-1]


@check
def responses_by_a_schema(service):
    answer = client_of(service).responses.create(
        model=service.chat_model, input="A person.", temperature=0, text={"format": PERSON_FORMAT}
    )
    return person_of(answer.output_text)


@check
def responses_stream_through_the_helper(service):
    with client_of(service).responses.stream(
        model=service.chat_model, input="A person.", temperature=0, text={"format": PERSON_FORMAT}
    ) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.status == "completed" and final.output_text == text, (final, text)
    return person_of(text)


@check
def responses_call_a_tool(service):
    answer = client_of(service).responses.create(
        model=service.chat_model,
        input="Weather in Rome?",
        temperature=0,
        tools=[WEATHER_FUNCTION],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    calls = [item for item in answer.output if item.type == "function_call"]
    assert len(calls) == 1 and calls[0].name == "get_weather" and calls[0].call_id, answer.output
    return city_of(json.loads(calls[0].arguments))


@check
def responses_go_on_and_are_kept(service):
    client = client_of(service)
    settings = {"model": service.chat_model, "max_output_tokens": 8, "temperature": 0}
    first = client.responses.create(input="My name is Ada.", **settings)
    second = client.responses.create(input="What is my name?", previous_response_id=first.id, **settings)
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.input_tokens, second
    assert client.responses.retrieve(second.id).output_text == second.output_text
    assert client.responses.input_items.list(second.id).data, "no input items"
    client.responses.delete(second.id)
    raised(openai.NotFoundError, lambda: client.responses.retrieve(second.id))


@check
def embeds(service):
    # Without encoding_format this client asks for base64 and decodes it.
    answer = client_of(service).embeddings.create(
        model=service.embedding_model, input=["a cat", "a kitten", "a railway"]
    )
    assert [item.index for item in answer.data] == [0, 1, 2] and answer.usage.prompt_tokens > 0, answer
    return sane_vectors(*(item.embedding for item in answer.data))


@check
def embeds_floats_alike(service):
    def vector(**settings):
        answer = client_of(service).embeddings.create(model=service.embedding_model, input="a cat", **settings)
        return answer.data[0].embedding

    assert dot(vector(), vector(encoding_format="float")) > 0.9999


@check
def abort_in_a_stream_frees_the_slot(service):
    stream = client_of(service).chat.completions.create(
        model=service.chat_model, messages=STORY, stream=True, **ENDLESS
    )
    for _ in stream:
        break
    assert service.running() == 1, service.running()
    stream.close()
    return f"free after {service.wait_until_free()} ms"


@check
def abort_before_the_answer_frees_the_slot(service):
    async def run():
        async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="any", max_retries=0) as client:
            call = client.chat.completions.create(model=service.chat_model, messages=STORY, **ENDLESS)
            task = asyncio.create_task(call)
            await asyncio.to_thread(service.wait_until_busy)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task

    asyncio.run(run())
    return f"free after {service.wait_until_free()} ms"


@check
def timeout_of_the_client_frees_the_slot(service):
    client = client_of(service, timeout=1.0)
    raised(
        openai.APITimeoutError,
        lambda: client.chat.completions.create(model=service.chat_model, messages=STORY, **ENDLESS),
    )
    return f"free after {service.wait_until_free()} ms"


@check
def error_unknown_model(service):
    client = client_of(service)
    error = raised(openai.NotFoundError, lambda: client.chat.completions.create(model="nope", messages=HELLO))
    assert error.status_code == 404 and error.code == "model_not_found" and "nope" in error.message, error.body
    raised(openai.NotFoundError, lambda: client.models.retrieve("nope"))
    raised(openai.NotFoundError, lambda: client.responses.create(model="nope", input="x"))
    raised(openai.NotFoundError, lambda: client.embeddings.create(model="nope", input="x"))


@check
def error_context_overflow(service):
    client = client_of(service)
    long = [{"role": "user", "content": "word " * 20_000}]
    for settings in ({}, {"stream": True}):
        error = raised(
            openai.BadRequestError,
            lambda: client.chat.completions.create(model=service.chat_model, messages=long, **settings),
        )
        assert error.code == "context_length_exceeded", error.body
    return error.message


@check
def error_wrong_type(service):
    create = client_of(service).chat.completions.create
    for field, value in {"temperature": "hot", "max_tokens": "many", "messages": "Say hello."}.items():
        request = {"model": service.chat_model, "messages": HELLO, field: value}
        error = raised(openai.BadRequestError, lambda: create(**request))
        assert error.param == field and error.type == "invalid_request_error", error.body
    error = raised(openai.BadRequestError, lambda: create(model=service.chat_model, messages=HELLO, temperature=9))
    assert error.param == "temperature", error.body
    return error.message


@check
def error_unsupported(service):
    client = client_of(service)
    error = raised(
        openai.BadRequestError, lambda: client.embeddings.create(model=service.chat_model, input="Say hello.")
    )
    assert error.code == "unsupported_value", error.body
    error = raised(
        openai.BadRequestError,
        lambda: client.chat.completions.create(model=service.embedding_model, messages=HELLO),
    )
    assert error.code == "unsupported_value", error.body


@check
def error_names_no_tool(service):
    error = raised(
        openai.BadRequestError,
        lambda: client_of(service).chat.completions.create(
            model=service.chat_model,
            messages=WEATHER,
            tools=[WEATHER_TOOL],
            tool_choice={"type": "function", "function": {"name": "nope"}},
        ),
    )
    assert (error.param or "").startswith("tool_choice"), error.body
    return error.message


if __name__ == "__main__":
    main("openai")
