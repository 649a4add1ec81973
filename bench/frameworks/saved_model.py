"""TensorFlow over a SavedModel with one signature."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frameworks.framework import Call, Framework, Layer, parameters


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    return tensorflow


def _write(path: Path, layers: Sequence[Layer]) -> None:
    tensorflow = _tensorflow()
    module = tensorflow.Module()
    module.weights = [(tensorflow.Variable(weights), tensorflow.Variable(biases)) for weights, biases in layers]

    @tensorflow.function(input_signature=[tensorflow.TensorSpec([None, layers[0][0].shape[0]], name="x")])  # type: ignore[untyped-decorator]
    def serve(x: Any) -> dict[str, Any]:
        for number, (weights, biases) in enumerate(module.weights):
            x = tensorflow.matmul(x, weights) + biases
            x = x if number == len(layers) - 1 else tensorflow.nn.relu(x)
        return {"y": x}

    tensorflow.saved_model.save(module, str(path), signatures=serve)


def _opened(path: Path) -> Call:
    """A callable of a session, which costs a third of a call of the signature's function."""
    tensorflow = _tensorflow()
    from tensorflow.core.protobuf import config_pb2

    v1 = tensorflow.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    session = v1.Session(graph=tensorflow.Graph(), config=config)
    with session.graph.as_default():
        signature = v1.saved_model.loader.load(session, ["serve"], str(path)).signature_def["serving_default"]
        options = config_pb2.CallableOptions()
        options.feed.append(signature.inputs["x"].name)
        options.fetch.append(signature.outputs["y"].name)
        options.run_options.inter_op_thread_pool = -1  # on the thread that calls
        return session._make_callable_from_options(options)  # type: ignore[no-any-return]


TENSORFLOW = Framework(
    "tensorflow",
    "model.savedmodel",
    f'platform: "tensorflow_savedmodel"\n{parameters(TF_NUM_INTRA_THREADS="1", TF_NUM_INTER_THREADS="1")}',
    _write,
    _opened,
    "naiad_tensorflow",
)
