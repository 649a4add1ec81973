"""The published fake backend: served, steered and asked."""

import asyncio
import threading

import pytest

from naiad.errors import InvalidArgumentError, ModelNotReadyError
from naiad_testing import serve
from naiad_testing.fake_backend import FakeBackend


def test_the_fake_echoes_and_tells_what_was_called(tmp_path):
    backend = FakeBackend()
    folder = backend.write(tmp_path, "m", "max_batch_size: 4")

    with serve(folder, plugins=[backend]) as client:
        answer = client.infer(INPUT=[[1, 2]])

    assert answer["OUTPUT"].tolist() == [[1, 2]]
    assert backend.events == ["complete m", "load m 1", "instantiate m_0", "close m_0", "close m 1"]
    assert [batch.size for batch in backend.batches] == [1]


def test_the_fake_answers_as_a_test_sets_it(tmp_path):
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": batch.input("INPUT") * 2})

    with serve(backend.write(tmp_path, "m"), plugins=[backend]) as client:
        assert client.infer(INPUT=[1, 2])["OUTPUT"].tolist() == [2, 4]


@pytest.mark.parametrize("error", ["load_error", "instance_error"])
def test_the_fake_fails_to_load_with_the_error_it_is_given(tmp_path, error):
    backend = FakeBackend()
    setattr(backend, error, InvalidArgumentError("bent on purpose"))

    with pytest.raises(ModelNotReadyError, match="bent on purpose"):  # noqa: SIM117
        with serve(backend.write(tmp_path, "m"), plugins=[backend]):
            pass


def test_executions_wait_while_the_fake_is_held(tmp_path):
    backend = FakeBackend()

    async def ask_and_release(server):
        answer = asyncio.ensure_future(server.infer(request))
        await asyncio.to_thread(backend.wait_until_held)
        executed_while_held = list(backend.batches)
        backend.release()
        return executed_while_held, await answer

    with serve(backend.write(tmp_path, "m"), plugins=[backend]) as client:
        backend.hold()
        request = client.request(INPUT=[5])
        executed_while_held, response = client.wait_for(ask_and_release)

    assert executed_while_held == []
    assert response.outputs["OUTPUT"].array.tolist() == [5]


def test_executions_that_were_held_before_do_not_count():
    backend = FakeBackend(answer=lambda _: None)
    backend.hold()
    earlier = threading.Thread(target=backend.run, args=[None])
    earlier.start()
    backend.wait_until_held()
    backend._held.release()  # as if the test had not waited for it
    backend.release()
    earlier.join()

    backend.hold()

    with pytest.raises(TimeoutError, match="no execution waits"):
        backend.wait_until_held(timeout=0.01)


def test_the_fake_is_not_ready_when_it_says_so(tmp_path):
    backend = FakeBackend()
    with serve(backend.write(tmp_path, "m"), plugins=[backend]) as client:
        backend.not_ready = "tired"

        readiness = client.call(lambda server: server.model_ready("m"))

    assert readiness.reasons == ("instance 'm_0' is not ready: tired",)
