"""What a client hears of an order that several replicas carried out, and of the readiness of groups."""

import json

import pytest

from naiad.errors import InvalidArgumentError
from naiad.options import Option, boolean
from naiad_ray.gateway import conclude
from naiad_ray.raw import GrpcRequest, HttpRequest, RawAnswer
from naiad_ray.scaling import replicas_for
from naiad_ray.settings import options_of

HTTP = HttpRequest("POST", b"/v2/repository/models/m/load", b"", (), b"")
GRPC = GrpcRequest("/inference.GRPCInferenceService/RepositoryModelLoad", b"")
FINE, BAD = RawAnswer(200), RawAnswer(400, body=b'{"error":"no such file"}')


def test_replicas_that_agree_are_answered_for_by_one_of_them() -> None:
    assert conclude(HTTP, {"a": FINE, "b": FINE}, ()) == FINE
    assert conclude(HTTP, {"a": BAD, "b": BAD}, ()) == BAD


def test_a_replica_that_failed_is_named_with_its_reason() -> None:
    answer = conclude(HTTP, {"a": FINE, "b": BAD}, ())

    assert answer.status == 503
    assert json.loads(answer.body)["error"].startswith(
        "1 of 2 replicas carried this out; replica b: no such file. Replicas that come up later will"
    )


def test_an_order_that_no_replica_carried_out_is_not_kept_for_later_ones() -> None:
    answer = conclude(GRPC, {"a": RawAnswer(3, text="no such file")}, ["b"])

    assert answer.text.startswith("0 of 2 replicas carried this out; replica a: no such file; replica b ended")
    assert "Replicas that come up later" not in answer.text


def test_a_replica_that_ended_meanwhile_is_named() -> None:
    answer = conclude(GRPC, {"a": RawAnswer(0)}, ["b"])

    assert (answer.status, answer.text.split(". ")[0]) == (
        14,
        "1 of 2 replicas carried this out; replica b ended or stopped answering before it carried the order out",
    )


def test_an_order_that_no_replica_was_there_for_is_no_success() -> None:
    assert "there is no replica now" in conclude(GRPC, {}, []).text


@pytest.mark.parametrize(
    ("waiting", "now", "replicas"),
    [(0, 3, 2), (0, 1, 1), (0.7, 3, 2), (0.9, 3, 3), (3, 2, 2), (16, 1, 2), (17, 1, 3), (100, 5, 13)],
)
def test_a_group_scales_by_the_requests_that_wait(waiting: float, now: int, replicas: int) -> None:
    assert replicas_for(waiting, 8.0, now) == replicas


OPTIONS = (
    Option("log-verbose", 0, "", int),
    Option("log-info", True, "", boolean),
    Option("mode", "a", "", choices=("a", "b")),
    Option("backend-config", (), "", repeatable=True),
)


def test_options_of_the_file_are_those_of_naiad_serve() -> None:
    values = {"log-verbose": 1, "log-info": False, "mode": "b", "backend-config": ["x", "y"]}

    assert options_of(values, OPTIONS) == {**values, "backend-config": ("x", "y")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"http-port": 1}, "options: http-port cannot be set on Ray: write http: {port: …}"),
        ({"allow-client-shm": True}, "allow-client-shm cannot be set on Ray: a client cannot share memory"),
        ({"log-verbos": 1}, "options: there is no option log-verbos; did you mean log-verbose?"),
        ({"log-info": "perhaps"}, "options: log-info: 'perhaps'"),
        ({"mode": "c"}, "options: mode must be one of a, b"),
    ],
)
def test_an_option_that_a_replica_cannot_have_is_refused_with_the_next_step(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        options_of(values, OPTIONS)

    assert message in str(raised.value)
