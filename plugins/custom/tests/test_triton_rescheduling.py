"""A TritonPythonModel that has requests executed again: iterative sequences."""

import pytest

from naiad_testing import serve

from .several import y


def test_only_a_model_of_iterative_sequences_executes_a_request_again(models):
    body = """
    requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
    return [None]
    """
    models.triton("outer", body)

    with serve(models.path) as client, pytest.raises(Exception, match="TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"):
        client["outer"].infer(X=[1])


def test_a_rescheduled_request_has_no_response(folder, batch_of):
    folder.write_triton(
        "requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)\n"
        "return [pb_utils.InferenceResponse([])]"
    )

    (result,) = folder.instance().execute(batch_of({"X": [1]}))

    assert "Expected a None object in the execute function return list for reschduled request" in str(result)


def test_release_flags_that_are_not_known_are_refused(folder, batch_of):
    folder.write_triton("requests[0].set_release_flags(4)")

    with pytest.raises(Exception, match="release flags 4 are not known"):
        folder.instance().execute(batch_of({"X": [1]}))


ITERATIVE = "sequence_batching { iterative_sequence: true }"
COUNTS_DOWN = """
responses = []
for request in requests:
    left = self.left.setdefault(request.request_id(), value_of(request.inputs()))
    self.left[request.request_id()] = left - 1
    if left > 0:
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        responses.append(None)
    else:
        responses.append(answer(self.left.pop(request.request_id()) + 100))
return responses
"""


def test_a_request_is_executed_again_until_the_model_answers_it(models):
    models.triton("outer", COUNTS_DOWN, config=ITERATIVE, more="left = {}")

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[5])) == 99
        assert client.call(lambda server: server.statistics("outer"))[0].execution_count == 6


@pytest.mark.parametrize("definition", ["def", "async def"])
def test_a_decoupled_model_answers_a_little_in_each_execution(models, definition):
    models.triton(
        "outer",
        """
        for request in requests:
            sender = request.get_response_sender()
            self.count += 1
            sender.send(answer(self.count))
            if self.count < value_of(request.inputs()):
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            else:
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
        definition=definition,
        decoupled=True,
        config=ITERATIVE,
        more="count = 0",
    )

    with serve(models.path) as client:
        assert [y(outputs) for outputs in client["outer"].stream(X=[4])] == [1, 2, 3, 4]
