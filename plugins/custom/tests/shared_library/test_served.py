"""Libraries behind the whole kernel: dynamic batches, states of sequences, errors, and the checks of every backend."""

import numpy as np
import pytest

import naiad_custom
import naiad_scheduler_dynamic
import naiad_scheduler_sequence
from naiad.backend import Reply
from naiad.errors import InvalidArgumentError
from naiad_custom.shared_library.backend import CustomBackend
from naiad_testing import serve
from naiad_testing.backends import BackendCase, check_backend

PLUGINS = [naiad_custom, naiad_scheduler_dynamic, naiad_scheduler_sequence]
X_TO_Y = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }'
KEEPING = """
max_batch_size: 4
input { name: "X" data_type: TYPE_INT32 dims: 1 }
output { name: "SUM" data_type: TYPE_INT32 dims: 1 }
sequence_batching {
  STRATEGY
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } }
  state { input_name: "KEPT" output_name: "KEPT_AFTER" data_type: TYPE_INT32 dims: 1 }
  state { input_name: "NAME" output_name: "NAME_AFTER" data_type: TYPE_STRING dims: 1 }
}
"""


@pytest.fixture
def folder(workbench):
    """A function that puts a library and a configuration into the model's folder, and tells where that is."""

    def put(library, config):
        workbench.put(library)
        (workbench.directory / "config.pbtxt").write_text(config)
        return workbench.directory

    return put


def test_the_backend_keeps_the_contract_of_backends(compiler, folder):
    case = BackendCase(
        folder(compiler.library("echo.c"), f"max_batch_size: 4 {X_TO_Y}"),
        requests=[{"X": [[1, 2]]}, {"X": [[3, 4], [5, 6]]}, {"X": [[7, 8]]}],
        expected=[{"Y": [[1, 2]]}, {"Y": [[3, 4], [5, 6]]}, {"Y": [[7, 8]]}],
    )

    check_backend(CustomBackend(), case)


@pytest.mark.parametrize("strategy", ["oldest { max_candidate_sequences: 4 }", "direct { }"])
def test_states_go_round_and_stay_where_they_are_left_out(compiler, folder, strategy):
    model = folder(compiler.library("keeping.c"), KEEPING.replace("STRATEGY", strategy))

    with serve(model, plugins=PLUGINS) as client:
        sums = []
        for at, (one, other) in enumerate([(1, 10), (0, 20), (2, 0), (3, 30)]):
            requests = [client.request(X=np.array([[value]], np.int32)) for value in (one, other)]
            for request, sequence in zip(requests, (7, 8), strict=True):
                request.correlation_id, request.sequence_start, request.sequence_end = sequence, at == 0, at == 3
            sums.append([each.outputs["SUM"].array.item() for each in client.send_all(requests)])

    assert sums == [[1, 10], [1, 30], [3, 30], [6, 60]]


def test_the_platform_of_old_repositories_is_understood_and_failures_reach_their_callers(compiler, folder):
    config = (
        f'platform: "custom" max_batch_size: 4 {X_TO_Y} dynamic_batching {{ }} '
        'parameters { key: "mistake" value { string_value: "fail one" } }'
    )

    with (
        serve(folder(compiler.library("mistakes.c"), config), plugins=PLUGINS) as client,
        pytest.raises(InvalidArgumentError, match=r"^X is too cold$"),
    ):
        client.infer(X=np.ones((1, 2), np.float32))


def test_threads_of_the_librarys_own_answer_requests(compiler, workbench):
    model = workbench.serve(compiler.library("threads.c", "-pthread"), f"max_batch_size: 8 {X_TO_Y}")
    arrays = [np.full((1, 2), at, np.float32) for at in range(8)]

    answers = model.execute(*({"X": each} for each in arrays))

    assert str(answers[2]) == "not the third"
    assert [each.outputs["Y"].tolist() for each in answers if isinstance(each, Reply)] == [
        each.tolist() for at, each in enumerate(arrays) if at != 2
    ]
