"""Sequences: sound ones step by step, several at once, and requests that a model of sequences refuses."""

import time
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from ..answers import Answer, Case, Ports
from ..grpc_asking import stream_case
from ..http_asking import http_case
from . import grpc_making
from .http_making import infer, tensor

START = {"sequence_start": True}
END = {"sequence_end": True}
_LONGEST_ID = 2**64 - 1
_IDLE_SECONDS = 1.5
"""Several times as long as the sequences of `sums_idle` may say nothing."""


def cases() -> list[Case]:
    """Every case of this page; each goes on with the sequences that earlier ones have left."""
    return [*_described(), *_sound(), *_refused(), *_forgotten(), *_over_grpc(), *_on_streams(), *_seen_again()]


def _described() -> list[Case]:
    return [
        http_case(f"sequences/{model}{what or '/metadata'}", "GET", f"/v2/models/{model}{what}")
        for model in ("sums_direct", "sums_oldest", "sums_text", "sums_named", "sums_alone")
        for what in ("", "/config")
    ]


def _sound() -> list[Case]:
    results = []
    for model, name in (
        ("sums_direct", 7),
        ("sums_oldest", 7),
        ("sums_text", "seven"),
        ("sums_named", "seven"),
        ("sums_alone", 7),
    ):
        results += [
            _ask(f"{model}/first", model, 1, sequence_id=name, **START),
            _ask(f"{model}/second", model, 2, sequence_id=name),
            _ask(f"{model}/started_again", model, 30, sequence_id=name, **START),
            _ask(f"{model}/after_it", model, 4, sequence_id=name),
            _ask(f"{model}/flags_that_are_false", model, 4, sequence_id=name, sequence_start=False, sequence_end=False),
            _ask(f"{model}/last", model, 5, sequence_id=name, **END),
            _ask(f"{model}/after_the_last", model, 6, sequence_id=name),
            _ask(f"{model}/first_and_last", model, 7, sequence_id=name, **START, **END),
            _ask(f"{model}/after_the_only_one", model, 8, sequence_id=name),
        ]
    return [*results, *_several("sums_direct", 1, 2, 3), *_several("sums_named", "a", "b", "c")]


def _several(model: str, *names: int | str) -> list[Case]:
    """Sequences that lie beside each other in a batch, and the places of those that are over, taken by others."""
    results = [_ask(f"{model}/several/{name}/first", model, 1, sequence_id=name, **START) for name in names]
    results += [_ask(f"{model}/several/{name}/second", model, 2, sequence_id=name) for name in reversed(names)]
    results += [_ask(f"{model}/several/{name}/last", model, 3, sequence_id=name, **END) for name in names]
    return results


def _refused() -> list[Case]:
    parameters_of: dict[str, Mapping[str, Any]] = {
        "no_id": {},
        "start_without_id": START,
        "id_0": {"sequence_id": 0, **START},
        "id_empty": {"sequence_id": "", **START},
        "unknown": {"sequence_id": 99},
        "unknown_end": {"sequence_id": 99, **END},
        "longest": {"sequence_id": _LONGEST_ID, **START, **END},
        "text_for_a_number": {"sequence_id": "nine", **START, **END},
        "start_as_text": {"sequence_id": 9, "sequence_start": "true"},
    }
    results = [_ask(f"sums_direct/{key}", "sums_direct", 1, **parameters) for key, parameters in parameters_of.items()]
    results += [
        _ask("sums_oldest/no_id", "sums_oldest", 1),
        _ask("sums_oldest/unknown", "sums_oldest", 1, sequence_id=99),
        _ask("sums_oldest/longer_than_the_control", "sums_oldest", 1, sequence_id=2**33 + 5, **START, **END),
        _ask("sums_text/number_for_a_text", "sums_text", 1, sequence_id=9, **START, **END),
        _ask("sums_named/unknown", "sums_named", 1, sequence_id="x"),
        _ask("sums_named/number_and_text", "sums_named", 1, sequence_id=9, **START, **END),
        _ask("sums_named/without_any", "sums_named", 1),
    ]
    two = [tensor("IN", "INT32", [2, 1], [1, 2])]
    control = [tensor("IN", "INT32", [1, 1], [1]), tensor("START", "INT32", [1, 1], [1])]
    whole = {"sequence_id": 5, **START, **END}
    return [
        *results,
        infer("sequences/sums_direct/batch_of_two", "sums_direct", two, parameters=whole),
        infer("sequences/sums_direct/with_a_control", "sums_direct", control, parameters=whole),
        infer("sequences/sums_direct/without_input", "sums_direct", [], parameters=whole),
    ]


def _forgotten() -> list[Case]:
    first = _ask("sums_idle/first", "sums_idle", 1, sequence_id=3, **START)
    late = _ask("sums_idle/late", "sums_idle", 2, sequence_id=3)

    def wait_and_ask(ports: Ports) -> Answer:
        time.sleep(_IDLE_SECONDS)
        return late.ask(ports)

    return [first, Case(late.key, wait_and_ask)]


def _over_grpc() -> list[Case]:
    def asks(key: str, model: str, number: int, **parameters: Any) -> Case:
        return grpc_making.infer(f"sequences/{key}", model, [_message(number)], parameters=parameters)

    return [
        asks("first", "sums_direct", 1, sequence_id=11, **START),
        asks("second", "sums_direct", 2, sequence_id=11),
        asks("last", "sums_direct", 3, sequence_id=11, **END),
        asks("after_the_last", "sums_direct", 4, sequence_id=11),
        asks("text_first", "sums_named", 1, sequence_id="eleven", **START),
        asks("text_last", "sums_named", 2, sequence_id="eleven", **END),
        asks("no_id", "sums_direct", 1),
        asks("id_empty", "sums_direct", 1, sequence_id="", **START),
        asks("unknown", "sums_oldest", 1, sequence_id=99),
    ]


def _on_streams() -> list[Case]:
    def asks(number: int, **parameters: Any) -> Message:
        return grpc_making.infer_request("sums_direct", [_message(number)], id=str(number), parameters=parameters)

    whole = [asks(1, sequence_id=21, **START), asks(2, sequence_id=21), asks(3, sequence_id=21, **END)]
    return [
        stream_case("stream/sequences/whole", whole),
        stream_case("stream/sequences/unknown", [asks(1, sequence_id=22)]),
        stream_case("stream/sequences/once_more", whole),
    ]


def _seen_again() -> list[Case]:
    """Requests that a model of iterative sequences asks for again."""

    def over_http(key: str, model: str, times: int, **parameters: Any) -> Case:
        parameters_of = [tensor("TIMES", "INT32", [1, 1], [times])]
        return infer(f"sequences/{model}/{key}", model, parameters_of, parameters=parameters)

    def on_stream(key: str, times: int) -> Case:
        parameters_of = grpc_making.tensor("TIMES", "INT32", [1, 1], int_contents=[times])
        message = grpc_making.infer_request("again_decoupled", [parameters_of], id=key)
        return stream_case(f"stream/sequences/{key}", [message])

    return [
        http_case("sequences/again/config", "GET", "/v2/models/again/config"),
        over_http("once", "again", 1),
        over_http("five_times", "again", 5),
        over_http("three_times_with_an_id", "again", 3, sequence_id=7, **START),
        over_http("three_times_with_an_end", "again", 3, sequence_id=7, **END),
        over_http("once", "again_wrongly", 1),
        over_http("twice", "again_wrongly", 2),
        on_stream("again_once", 1),
        on_stream("again_four_times", 4),
    ]


def _ask(key: str, model: str, number: int, **parameters: Any) -> Case:
    shape = [1] if model == "sums_alone" else [1, 1]
    return infer(f"sequences/{key}", model, [tensor("IN", "INT32", shape, [number])], parameters=parameters)


def _message(number: int) -> Message:
    return grpc_making.tensor("IN", "INT32", [1, 1], int_contents=[number])
