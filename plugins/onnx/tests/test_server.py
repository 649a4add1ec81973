"""ONNX models behind a whole server, without a frontend."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import naiad_onnx
import naiad_scheduler_dynamic
from naiad.errors import InvalidArgumentError, ModelFailedError, ModelNotReadyError
from naiad_testing import serve

PLUGINS = [naiad_onnx, naiad_scheduler_dynamic]


def write(repository: Path, name: str, proto, config: str = "") -> Path:
    model = repository / name
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.onnx").write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    if config:
        (model / "config.pbtxt").write_text(config)
    return model


def test_a_model_without_configuration_is_served(tmp_path, models):
    model = write(tmp_path, "add_sub", models.add_sub())

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(A=np.full((1, 16), 3), B=np.full((1, 16), 1))
        config = client.call(lambda server: server.model_config("add_sub"))

    assert answer["SUM"].tolist() == [[4.0] * 16]
    assert answer["DIFFERENCE"].tolist() == [[2.0] * 16]
    assert (config.platform, config.backend) == ("onnxruntime_onnx", "onnxruntime")
    assert config.max_batch_size == 4
    assert config.dynamic_batching.preferred_batch_size == (4,)
    assert [(group.name, group.count) for group in config.instance_group] == [("add_sub", 2)]


def test_requests_share_an_execution_and_keep_their_own_answers(tmp_path, models):
    model = write(
        tmp_path,
        "one",
        models.identity(["n", 1]),
        """
        max_batch_size: 8
        instance_group [ { count: 1 } ]
        dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 10000000 }
        """,
    )

    with serve(model, plugins=PLUGINS) as client:
        answers = client.infer_all(*({"IN": [[float(number)]]} for number in range(8)))
        (statistics,) = client.call(lambda server: server.statistics("one"))

    assert [answer["OUT"].tolist() for answer in answers] == [[[float(number)]] for number in range(8)]
    assert (statistics.inference_count, statistics.execution_count) == (8, 1)


def test_the_request_that_fails_a_batch_is_the_only_one_to_fail(tmp_path, models):
    model = write(
        tmp_path,
        "table",
        models.gather(),
        """
        max_batch_size: 3
        instance_group [ { count: 1 } ]
        dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 10000000 }
        """,
    )

    with serve(model, plugins=PLUGINS) as client:
        requests = [client.request(INDEX=[[index]]) for index in (1, 9, 3)]
        first, second, third = client.send_all(requests)

    assert first.outputs["OUT"].array.tolist() == [[11.0]]
    assert isinstance(second, ModelFailedError)
    assert "onnx runtime error 2" in str(second)
    assert third.outputs["OUT"].array.tolist() == [[13.0]]


def test_text_with_a_nul_byte_passes_through_the_server(tmp_path, models):
    model = write(tmp_path, "text", models.identity(["n", 2], TensorProto.STRING))

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(IN=np.array([[b"a\x00b", "é".encode()]], dtype=object))
        with pytest.raises(InvalidArgumentError, match="element 0 is not UTF-8"):
            client.infer(IN=np.array([[b"\xff", b""]], dtype=object))

    assert answer["OUT"].tolist() == [[b"a\x00b", "é".encode()]]


def test_a_scalar_model_is_served_with_one_dim(tmp_path, models):
    model = write(tmp_path, "scalar", models.identity([]))

    with serve(model, plugins=PLUGINS) as client:
        answer = client.infer(IN=[5.0])

    assert answer["OUT"].tolist() == [5.0]


def test_an_optional_input_may_be_left_out(tmp_path, models):
    model = write(
        tmp_path,
        "scaled",
        models.with_default(),
        'input [ { name: "IN" }, { name: "SCALE" optional: true } ]',
    )

    with serve(model, plugins=PLUGINS) as client:
        default = client.infer(IN=[1.0, 2.0, 3.0])
        scaled = client.infer(IN=[1.0, 2.0, 3.0], SCALE=[10.0])

    assert default["OUT"].tolist() == [2.0, 4.0, 6.0]
    assert scaled["OUT"].tolist() == [10.0, 20.0, 30.0]


def test_a_corrupt_model_is_unavailable_with_the_reason(tmp_path, models):
    write(tmp_path, "good", models.identity(["n", 1]))
    write(tmp_path, "bad", b"this is no model")

    with serve(tmp_path, plugins=PLUGINS, options={"exit-on-error": False}) as client:
        answer = client["good"].infer(IN=[[1.0]])
        states = {entry.name: (entry.state, entry.reason) for entry in client.call(lambda server: server.index())}

    assert answer["OUT"].tolist() == [[1.0]]
    assert states["good"][0] == "READY"
    assert states["bad"][0] == "UNAVAILABLE"
    assert "ONNX Runtime cannot load" in states["bad"][1]
    assert "bad/1/model.onnx" in states["bad"][1]


def test_a_contradicting_configuration_is_refused_with_every_problem(tmp_path, models):
    model = write(
        tmp_path,
        "m",
        models.identity(["n", 4]),
        """
        max_batch_size: 8
        input [ { name: "IN" data_type: TYPE_FP32 dims: [ 5 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 4 ] } ]
        """,
    )

    with pytest.raises(ModelNotReadyError) as caught, serve(model, plugins=PLUGINS):
        pass

    assert "the model expects dims [4] but the model configuration specifies dims [5]" in str(caught.value)
    assert "expects datatype TYPE_INT32 for output 'OUT', model provides TYPE_FP32" in str(caught.value)


def test_statistics_tell_the_memory_of_the_weights(tmp_path, models):
    model = write(tmp_path, "dense", models.dense(64, 32))

    with serve(model, plugins=PLUGINS) as client:
        (statistics,) = client.call(lambda server: server.statistics("dense"))

    assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [("CPU", 0, 64 * 32 * 4)]


WARMED_UP = """
max_batch_size: 4
model_warmup [ {
  name: "row" batch_size: 1
  inputs { key: "INDEX" value { data_type: TYPE_INT64 dims: [ 1 ] input_data_file: "row" } }
} ]
"""


@pytest.fixture
def warmed_up(tmp_path, models):
    """The folder of a table whose warmup asks for a row of it."""

    def write_warmup(row: int) -> Path:
        model = write(tmp_path, "table", models.gather(), WARMED_UP)
        (model / "warmup").mkdir()
        (model / "warmup" / "row").write_bytes(np.array([row], np.int64).tobytes())
        return model

    return write_warmup


def test_a_model_is_warmed_up_before_it_serves(warmed_up):
    with serve(warmed_up(3), plugins=PLUGINS) as client:
        answer = client.infer(INDEX=[[1]])

    assert answer["OUT"].tolist() == [[11.0]]


def test_a_model_whose_warmup_fails_does_not_serve(warmed_up):
    with pytest.raises(ModelNotReadyError) as caught, serve(warmed_up(9), plugins=PLUGINS):
        pass

    assert "sample 'row'" in str(caught.value)
    assert "indices element out of data bounds" in str(caught.value)
