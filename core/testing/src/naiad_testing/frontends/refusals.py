"""Behaviours of errors: the status of each kind, and requests that are refused with what is wrong with them."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from naiad import errors
from naiad_testing.frontends.calls import Call, Input, Output, RefusedError
from naiad_testing.frontends.inference import SUMS, A, B, X, counted
from naiad_testing.frontends.stage import Stage
from naiad_testing.frontends.table import Table

REFUSALS = Table()
ERRORS = sorted(
    name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.NaiadError)
)
NO_BATCH = np.zeros((9, 4), np.float32)


def refusal(stage: Stage, action: Any, error: str) -> str:
    """The message of the refusal that the action must end with; its status must be that of the error."""
    with pytest.raises(RefusedError) as caught:
        action()
    assert caught.value.status == stage.kind.statuses[error], caught.value
    assert "Traceback" not in caught.value.message
    return caught.value.message


@REFUSALS.cases({name: (name,) for name in ERRORS})
def an_error_of_a_model_has_its_status_and_names_its_request(stage: Stage, name: str) -> None:
    call = Call("sayer", [X], id="5", parameters={"error": name})

    message = refusal(stage, lambda: stage.shared.adapter.infer(call), name)

    assert message.startswith("[request id: 5] ")
    assert message.endswith("it is wrong")


@REFUSALS.behaviour
def an_exception_of_a_model_is_an_error_of_the_server(stage: Stage) -> None:
    call = Call("sayer", [X], parameters={"crash": "ouch"})

    assert "ouch" in refusal(stage, lambda: stage.shared.adapter.infer(call), "ModelFailedError")
    assert stage.shared.adapter.infer(Call("sayer", [X])).outputs["X"] is not None


UNFIT: dict[str, tuple[Call, str]] = {
    "missing input": (Call("add_sub", SUMS[:1]), "['B']"),
    "unknown input": (Call("add_sub", [*SUMS, Input("C", A)]), "'C'"),
    "datatype": (Call("add_sub", [SUMS[0], Input("B", B.astype(np.int32))]), "'INT32'"),
    "shape": (Call("add_sub", [SUMS[0], Input("B", B[:, :3])]), "[2,3]"),
    "batch sizes": (Call("add_sub", [SUMS[0], Input("B", B[:1])]), "batch"),
    "batch": (Call("add_sub", [Input("A", NO_BATCH), Input("B", NO_BATCH)]), "<= 8"),
    "unknown output": (Call("add_sub", SUMS, [Output("Z")]), "'Z'"),
}


@REFUSALS.cases(UNFIT)
def a_request_that_does_not_fit_the_model_is_refused(stage: Stage, call: Call, fact: str) -> None:
    served = stage.shared
    before = len(served.backend.batches)

    message = refusal(stage, lambda: served.adapter.infer(replace(call, id="r5")), "InvalidArgumentError")

    assert message.startswith("[request id: r5] ")
    assert fact in message
    assert len(served.backend.batches) == before


INVALID: dict[str, tuple[Call, str, str]] = {
    "unknown model": (Call("dream", SUMS), "NotFoundError", "'dream'"),
    "unknown version": (Call("add_sub", SUMS, version="9"), "NotFoundError", "version 9"),
    "version 0": (Call("add_sub", SUMS, version="0"), "InvalidArgumentError", "version"),
    "input twice": (Call("add_sub", [*SUMS, SUMS[0]]), "InvalidArgumentError", "'A'"),
    "output twice": (Call("add_sub", SUMS, [Output("SUM")] * 2), "InvalidArgumentError", "'SUM'"),
    "too few bytes": (Call("add_sub", [SUMS[0], replace(SUMS[1], shape=(2, 5))]), "InvalidArgumentError", "40"),
    "too many strings": (
        Call("mirror", [Input("IN_BYTES", np.array([[b"a", b"b"]], object), shape=(1, 1))]),
        "InvalidArgumentError",
        "'IN_BYTES'",
    ),
    "classes of strings": (Call("sayer", [X], [Output("SAID", classes=1)]), "InvalidArgumentError", "'SAID'"),
    "many responses": (Call("repeat", [counted(1)]), "UnsupportedError", "decoupled transaction policy"),
}


@REFUSALS.cases(INVALID)
def a_request_that_cannot_be_is_refused(stage: Stage, call: Call, error: str, fact: str) -> None:
    served = stage.shared
    before = served.backend.sent

    assert fact in refusal(stage, lambda: served.adapter.infer(call), error)
    assert served.backend.sent == before


@REFUSALS.cases({"a model": ("dream", ""), "a version": ("add_sub", "9")})
def what_is_not_there_is_refused_without_the_id_of_the_request(stage: Stage, model: str, version: str) -> None:
    call = Call(model, SUMS, version=version, id="r5")

    message = refusal(stage, lambda: stage.shared.adapter.infer(call), "NotFoundError")

    assert message.startswith(f"Request for unknown model: '{model}'")


@REFUSALS.behaviour
def a_header_named_as_a_parameter_of_the_protocol_is_refused(stage: Stage) -> None:
    with stage.serving({stage.option("header-forward-pattern"): "^sequence_id$"}) as served:
        call = Call("sayer", [X], headers={"sequence_id": "1"})

        assert "'sequence_id'" in refusal(stage, lambda: served.adapter.infer(call), "InvalidArgumentError")


@REFUSALS.cases(
    {
        f"{method} of {what}": (method, name, version, fact)
        for method in ("model_metadata", "model_config", "statistics")
        for what, name, version, fact in (
            ("a model", "dream", "", "'dream'"),
            ("a version", "add_sub", "7", "version 7"),
        )
    }
)
def a_report_of_what_is_not_there_is_refused(stage: Stage, method: str, name: str, version: str, fact: str) -> None:
    report = getattr(stage.shared.adapter, method)

    assert fact in refusal(stage, lambda: report(name, version), "NotFoundError")
