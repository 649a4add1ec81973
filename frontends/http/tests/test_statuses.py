"""What an error is over HTTP; the table of all frontends has the status of each."""

import inspect

import orjson
import pytest

from naiad import errors
from naiad_http.statuses import STATUSES, HttpError, error_response, phrase, status_of


def test_every_error_of_naiad_is_in_the_table():
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.NaiadError)}

    assert set(STATUSES) == kinds


def test_an_error_of_a_plugin_has_the_status_of_its_parent():
    class DiskFullError(errors.UnavailableError):
        pass

    assert status_of(DiskFullError("no space left")) == 503


@pytest.mark.parametrize(("retry_after", "seconds"), [(None, "1"), (0.2, "1"), (2.1, "3"), (30, "30")])
def test_what_is_unavailable_says_when_to_try_again(retry_after, seconds):
    answer = error_response(errors.QueueFullError("the queue is full", retry_after=retry_after))

    assert ("Retry-After", seconds) in answer.headers


def test_other_errors_do_not_ask_for_another_try():
    assert dict(error_response(errors.InternalError("broken")).headers) == {"Content-Type": "application/json"}


def test_the_request_id_is_reported_when_there_is_one():
    assert orjson.loads(error_response(errors.InternalError("broken"), "42").body) == {
        "error": "[request id: 42] broken"
    }


def test_what_only_http_knows_brings_its_status_and_headers():
    answer = error_response(HttpError(405, "Method Not Allowed", (("Allow", "POST"),)))

    assert (answer.status, dict(answer.headers)["Allow"]) == (405, "POST")


def test_a_message_that_is_no_text_is_reported_all_the_same():
    assert orjson.loads(error_response(errors.InternalError("half \ud800 pair")).body) == {"error": "half ? pair"}


def test_every_status_in_use_has_a_phrase():
    assert all(phrase(status) for status in STATUSES.values())
    assert phrase(499) == "Client Closed Request"
