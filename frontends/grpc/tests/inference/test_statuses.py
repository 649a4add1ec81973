"""What an error is over gRPC; the table of all frontends has the status code of each."""

import inspect
from functools import partial

import grpc
import pytest

from naiad import errors
from naiad_grpc.statuses import CODES, Code, RpcError, code_of, rpc_error, too_long


def test_every_error_of_naiad_is_in_the_table():
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.NaiadError)}

    assert set(CODES) == kinds


def test_an_error_of_a_plugin_has_the_code_of_its_parent():
    class DiskFullError(errors.UnavailableError):
        pass

    assert code_of(DiskFullError("no space left")) is Code.UNAVAILABLE


def test_the_codes_are_those_of_grpc():
    assert {code.name: code.value for code in Code} == {code.name: code.value[0] for code in grpc.StatusCode}


def test_a_message_names_its_request():
    error = errors.NotFoundError("no model 'm'")

    assert rpc_error(error, "7").message == "[request id: 7] no model 'm'"


def test_an_unforeseen_error_tells_the_log_and_not_the_caller(caplog):
    status = rpc_error(ZeroDivisionError("a secret"), "7")

    assert status.code is Code.INTERNAL
    assert "secret" not in status.message
    assert "a secret" in caplog.text


def test_what_already_is_a_status_stays_as_it_is():
    error = RpcError(Code.ABORTED, "gone")

    assert rpc_error(error, "7") is error


def test_a_message_that_is_no_unicode_can_still_be_sent():
    assert rpc_error(errors.NotFoundError("model '\udc80'")).message == "model '?'"


@pytest.mark.parametrize("error", [errors.UnknownError, partial(RpcError, Code.NOT_FOUND)], ids=["error", "status"])
@pytest.mark.parametrize("character", ["x", "%", "é", "\n"])
def test_a_message_is_cut_to_what_a_header_can_carry(character, error):
    message = rpc_error(error(character * 10_000)).message

    escaped = sum(1 if 32 <= byte < 127 and byte != 37 else 3 for byte in message.encode())
    assert message.endswith(" …")
    assert 6500 < escaped < 7100


@pytest.mark.parametrize("status", [partial(rpc_error, ValueError("x")), partial(too_long, 2, 1)])
def test_a_message_with_a_long_request_id_is_cut_as_well(status):
    message = status(request_id="i" * 100_000).message

    assert message.startswith("[request id: iii")
    assert message.endswith(" …")
    assert len(message) < 7100


def test_a_long_message_that_fits_stays_whole():
    assert rpc_error(errors.UnknownError("x" * 6000)).message == "x" * 6000
