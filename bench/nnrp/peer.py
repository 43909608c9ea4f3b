"""The real peer pair of `npm run bench -- nnrp`: two runtimes of nnrp-py in two processes.

    python peer.py serve URI SESSIONS           prints its address, serves; answers lines on stdin with its memory
    python peer.py load URI REQUESTS EVENTS     prints round trips and the rate of a stream as JSON
    python peer.py hold URI SESSIONS            keeps sessions open, then a silent operation in each

Adapted from the bench of the reference peer beside `tests/clients/nnrp-peer`, whose `peer_common.py` it uses. It calls
what lies under nnrp-py's async API: private, but the fastest that the runtime offers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/clients/nnrp-peer"))

from nnrp.client import (
    NativeClientOptions,
    NativeClientProviderRoute,
    SubmitIdentity,
    SubmitPolicy,
    SubmitRequest,
    TypedPayloadInputFrame,
    TypedPayloadSubmitInput,
    connect_native_client_connection,
)
from nnrp.core import MessageType, PayloadKind
from nnrp.native import (
    NativeRuntimeServerSession,
    NativeRuntimeSession,
    _buffer_view_from_payload,
    _NnrpServerSendResultRequest,
    raise_for_native_status,
)
from nnrp.runtime import NativeRuntimeEvent, PartialResultMetadata
from nnrp.schema import StreamSemantics
from nnrp.server import (
    NativeServerAcceptOptions,
    NativeServerBootstrapOptions,
    NativeServerProviderRoute,
    listen_native_server,
)
from peer_common import Endpoint, application_uri, encode_json, pack_profile_body, result_metadata, unpack_profile_body

DELTA = encode_json({"type": "response.output_text.delta", "index": 0, "delta": "token "})
COMPLETED = pack_profile_body(encode_json({"type": "response.completed", "body": {
    "id": "chatcmpl_bench", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}}))  # fmt: skip
RESULT = result_metadata(200)
SILENT = -1


def events_wanted(operation: Any) -> int:
    metadata = operation.submit.metadata.value
    body = operation.submit.tail.body
    envelope = unpack_profile_body(metadata.payload_kind_bitmap, metadata.payload_frame_count, body)
    return int(envelope["body"].get("events", 0))


def serve_session(session: NativeRuntimeServerSession) -> None:
    while True:
        event = session._next_event_blocking().value
        if isinstance(event, NativeRuntimeEvent) and event.header.message_type is MessageType.SESSION_CLOSE:
            session.close()
            return
        if not hasattr(event, "send_result"):
            continue
        wanted = events_wanted(event)
        if wanted == SILENT:
            continue
        for number in range(1, wanted + 1):
            session._send_operation_runtime_frame(
                event._handle, event.frame_id, MessageType.PARTIAL_RESULT,
                PartialResultMetadata(event.operation_id, number, 0, number - 1, len(DELTA), 0), DELTA,
            )  # fmt: skip
        view, owner = _buffer_view_from_payload(RESULT.pack() + COMPLETED)
        raise_for_native_status(
            session.entrypoints.server_send_result(_NnrpServerSendResultRequest(event._handle.to_ffi(), view))
        )
        del owner


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def answer_lines() -> None:
    for _ in sys.stdin:
        print(json.dumps({"resident": resident_bytes()}), flush=True)
    os._exit(0)  # whoever asked is gone


def serve(uri: str, sessions: int) -> None:
    endpoint = Endpoint.parse(uri)
    options = NativeServerBootstrapOptions(
        endpoint=application_uri(secure=False),
        provider_routes={endpoint.transport: NativeServerProviderRoute(endpoint.uri)},
        transport_policy=endpoint.forced_policy,
    )
    with listen_native_server(options) as server:
        print(json.dumps({"url": next(iter(server.bound_provider_endpoints.values())).uri}), flush=True)
        Thread(target=answer_lines, daemon=True).start()
        accepted = [accept(server) for _ in range(sessions)]
        if sessions == 1:
            serve_session(accepted[0])
            return
        for session in accepted:
            session._next_event_blocking()  # a silent operation
        time.sleep(3600)


def accept(server: Any) -> NativeRuntimeServerSession:
    return asyncio.run(server.accept(NativeServerAcceptOptions(timeout_ms=20_000)))


def request(number: int, events: int) -> SubmitRequest:
    envelope = encode_json({
        "schema_version": "openai-compatible/1", "operation": "chat.completions.create",
        "body": {"model": "example-model", "messages": [{"role": "user", "content": "Say hello."}], "events": events,
                 "stream": events > 0},
    })  # fmt: skip
    frame = TypedPayloadInputFrame(
        profile_id=0, payload_kind=PayloadKind.STRUCTURED_EVENT, payload=envelope,
        stream_semantics=StreamSemantics.SNAPSHOT,
    )  # fmt: skip
    return SubmitRequest.typed_payload(
        TypedPayloadSubmitInput(SubmitIdentity(number, number), SubmitPolicy(), (frame,))
    )


def finish(session: NativeRuntimeSession, batch: int) -> int:
    # A poll for more than one event waits about 2 ms for more to come: good for a stream, bad for one answer.
    count = 0
    while True:
        for event in session.poll_events_batch(max_events=batch, timeout_ms=1000):
            if isinstance(event, NativeRuntimeEvent) and event.header.message_type is MessageType.RESULT_PUSH:
                return count
            count += 1


def client_options(uri: str) -> NativeClientOptions:
    endpoint = Endpoint.parse(uri)
    return NativeClientOptions(
        endpoint=application_uri(secure=False),
        provider_routes={endpoint.transport: NativeClientProviderRoute(endpoint.uri)},
        transport_policy=endpoint.forced_policy,
    )


def load(uri: str, requests: int, events: int) -> dict[str, Any]:
    with connect_native_client_connection(client_options(uri)) as connection:
        session = asyncio.run(connection.open_session())
        times = []
        for number in range(1, requests + 1):
            start = time.perf_counter()
            session.submit_operation(request(number, 0))
            finish(session, 1)
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        session.submit_operation(request(requests + 1, events))
        count = finish(session, 64)
        elapsed = time.perf_counter() - start
        session.close()
    return {"roundTripsUs": [took * 1e6 for took in times], "events": count, "seconds": elapsed}


def hold(uri: str, sessions: int) -> None:
    with ExitStack() as stack:
        opened = []
        for _ in range(sessions):
            connection = stack.enter_context(connect_native_client_connection(client_options(uri)))
            opened.append(asyncio.run(connection.open_session()))
        print(json.dumps({"open": len(opened)}), flush=True)
        sys.stdin.readline()
        for session in opened:
            session.submit_operation(request(1, SILENT))
        print(json.dumps({"submitted": len(opened)}), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", uri, sessions]:
            serve(uri, int(sessions))
        case ["load", uri, requests, events]:
            print(json.dumps(load(uri, int(requests), int(events))), flush=True)
        case ["hold", uri, sessions]:
            hold(uri, int(sessions))
        case _:
            raise SystemExit(__doc__)
