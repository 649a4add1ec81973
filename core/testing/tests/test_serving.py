"""Serving models in the test's own process."""

import subprocess
import sys
import threading
from textwrap import dedent

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.errors import InvalidArgumentError, ModelNotReadyError, NotFoundError
from naiad_testing import serve
from naiad_testing.fake_backend import FakeBackend


def test_a_repository_serves_all_its_models(tmp_path):
    backend = FakeBackend()
    for name in ("one", "two"):
        backend.write(tmp_path, name)
    (tmp_path / "README").write_text("not a model")

    with serve(tmp_path, plugins=[backend]) as client:
        assert client["one"].infer(INPUT=[1])["OUTPUT"].tolist() == [1]
        assert client["two"].infer(INPUT=[2])["OUTPUT"].tolist() == [2]
        with pytest.raises(InvalidArgumentError, match=r"the models are one, two; say which: client\['name'\]"):
            client.infer(INPUT=[1])


def test_one_folder_of_a_repository_is_served_alone(tmp_path):
    backend = FakeBackend()
    folder = backend.write(tmp_path, "one")
    backend.write(tmp_path, "two")

    with serve(folder, plugins=[backend]) as client, pytest.raises(NotFoundError):
        client["two"].infer(INPUT=[1])


def test_an_error_of_one_request_is_an_outcome_among_the_others(tmp_path):
    backend = FakeBackend()

    with serve(backend.write(tmp_path, "m"), plugins=[backend]) as client:
        good = client.request(INPUT=[1])
        bad = client.request(OTHER=[1])
        outcomes = client.send_all([good, bad])

    assert outcomes[0].outputs["OUTPUT"].array.tolist() == [1]
    assert isinstance(outcomes[1], InvalidArgumentError)


def test_a_model_that_does_not_load_says_why(tmp_path):
    backend = FakeBackend()
    backend.load_error = InvalidArgumentError("bent")

    with pytest.raises(ModelNotReadyError, match="bent"), serve(backend.write(tmp_path, "m"), plugins=[backend]):
        pass


@pytest.mark.parametrize(
    ("target", "message"), [(print, "is not marked as a model; put @naiad_custom"), ("/nowhere", "there is no folder")]
)
def test_what_cannot_be_served_is_refused(target, message):
    with pytest.raises(InvalidArgumentError, match=message), serve(target):
        pass


class Mark:
    """What a plugin marks its functions with."""

    def __init__(self, backend: FakeBackend) -> None:
        self.backend = backend

    def serve_from(self, target, repository):
        self.backend.write(repository, target.__name__)
        return [self.backend]


def test_a_marked_function_is_served_by_the_plugin_that_marked_it():
    def marked():
        pass

    marked.__naiad_model__ = Mark(FakeBackend())

    with serve(marked, plugins=[]) as client:
        assert client["marked"].infer(INPUT=[3])["OUTPUT"].tolist() == [3]


def test_the_fixture_serves_until_the_test_ends(tmp_path):
    (tmp_path / "test_it.py").write_text(
        dedent("""
            from naiad_testing.fake_backend import FakeBackend

            BACKEND = FakeBackend()

            def test_serves(naiad_serve, tmp_path):
                client = naiad_serve(BACKEND.write(tmp_path, "m"), plugins=[BACKEND])
                assert client.infer(INPUT=[1])["OUTPUT"].tolist() == [1]
                assert "close m 1" not in BACKEND.events

            def test_served():
                assert "close m 1" in BACKEND.events
        """)
    )

    others = [
        f"-pno:{name}" for name in ("hypothesispytest", "anyio", "xdist")
    ]  # whose import takes a third of the run
    command = [sys.executable, "-m", "pytest", "-q", *others, "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "2 passed" in done.stdout, done.stdout


def test_the_fixture_costs_a_pytest_run_no_numpy():
    code = "import sys, naiad_testing.fixtures; print('numpy' in sys.modules)"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "False"


def counting(batch):
    """Five responses, an error among them where OUTPUT would be the third."""
    sender = batch.sender(0)
    for number in range(5):
        bad = number == 2 and batch.requests[0].id == "bad"
        sender.send(InvalidArgumentError("no twos") if bad else Reply({"OUTPUT": np.float32([number])}))
    sender.send(None, final=True)
    return [None]


STREAMS = "model_transaction_policy { decoupled: true }"


def test_a_stream_gives_the_outputs_of_each_response(tmp_path):
    backend = FakeBackend(answer=counting)

    with serve(backend.write(tmp_path, "m", STREAMS), plugins=[backend]) as client:
        results = [outputs["OUTPUT"].item() for outputs in client.stream(INPUT=[1])]

    assert results == [0, 1, 2, 3, 4]


def test_responses_are_given_whole_with_their_errors_and_the_final_one(tmp_path):
    backend = FakeBackend(answer=counting)

    with serve(backend.write(tmp_path, "m", STREAMS), plugins=[backend]) as client:
        request = client.request(INPUT=[1])
        request.id = "bad"
        results = [(response.final, str(response.error or "")) for response in client.responses(request)]

    assert results == [(False, ""), (False, ""), (False, "no twos"), (False, ""), (False, ""), (True, "")]


def test_the_error_of_one_response_is_raised_by_a_stream_of_outputs(tmp_path):
    def complain(batch):
        batch.sender(0).send(InvalidArgumentError("no"))
        batch.sender(0).send(None, final=True)
        return [None]

    backend = FakeBackend(answer=complain)

    with (
        serve(backend.write(tmp_path, "m", STREAMS), plugins=[backend]) as client,
        pytest.raises(InvalidArgumentError, match="no"),
    ):
        next(client.stream(INPUT=[1]))


def test_closing_a_stream_is_the_caller_going_away(tmp_path):
    gone = threading.Event()

    def endless(batch):
        sender = batch.sender(0)
        while sender.send(Reply({"OUTPUT": np.float32([1])})):
            pass
        gone.set()
        sender.send(None, final=True)
        return [None]

    backend = FakeBackend(answer=endless)

    with serve(backend.write(tmp_path, "m", STREAMS), plugins=[backend]) as client:
        stream = client.stream(INPUT=[1])
        next(stream)
        stream.close()
        ended = gone.wait(10)

    assert ended


def test_a_stream_of_a_model_that_answers_once_has_one_response(tmp_path):
    backend = FakeBackend()

    with serve(backend.write(tmp_path, "m"), plugins=[backend]) as client:
        results = [outputs["OUTPUT"].tolist() for outputs in client.stream(INPUT=[1, 2])]

    assert results == [[1, 2]]
