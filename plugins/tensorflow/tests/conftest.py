"""TensorFlow models made in code, and the backend that loads them without a server."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from naiad_tensorflow.backend import TensorFlowBackend
from naiad_tensorflow.runtime import runtime
from naiad_testing.workbench import Workbench

v1 = tf.compat.v1
runtime()  # it keeps TensorFlow's deprecations out of the log


class AddSub(tf.Module):
    """sum = (a + b) * weight, difference = a - b, over FP32[n, 16]; `doubled` is a signature of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 16], name="a"), tf.TensorSpec([None, 16], name="b")])
    def serve(self, a: tf.Tensor, b: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"sum": (a + b) * self.weight, "difference": a - b}

    @tf.function(input_signature=[tf.TensorSpec([None, 16], name="a")])
    def double(self, a: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"twice": a + a}


def add_sub(path: Path) -> None:
    """A SavedModel of TensorFlow 2."""
    module = AddSub()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.serve, "doubled": module.double})


def old_add_sub(path: Path, tag: str = "serve") -> None:
    """The same as a SavedModel of TensorFlow 1, with a variable that an operation sets to 10."""
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = (v1.placeholder(tf.float32, [None, 16], name=name) for name in ("a", "b"))
        weight = v1.get_variable("weight", initializer=1.0)
        v1.assign(weight, 10.0, name="make_it_ten")
        made = {"sum": (a + b) * weight, "difference": a - b}
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"a": a, "b": b}, made)
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, [tag], {"serving_default": signature})
        builder.save()


def frozen(path: Path) -> None:
    """SUM = A + B, ROWS = A in rows of 4, as a GraphDef."""
    with tf.Graph().as_default() as graph:
        a, b = (v1.placeholder(tf.float32, [None, 16], name=name) for name in ("A", "B"))
        tf.add(a, b, name="SUM")
        tf.reshape(a, [-1, 4], name="ROWS")
        path.write_bytes(graph.as_graph_def().SerializeToString())


def identity(path: Path, dtype: tf.DType) -> None:
    """y = x, over [n, 3]."""

    @tf.function(input_signature=[tf.TensorSpec([None, 3], dtype, name="x")])
    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.identity(x)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


def look_up(path: Path) -> None:
    """y = row x of a table of four: fails for an index of 4 and more."""

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.int64, name="x")])
    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.gather(tf.constant([10.0, 11.0, 12.0, 13.0]), x)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


def accumulator(path: Path) -> None:
    """A model of sequences: out = x + state where the sequence does not start, and state_out = out."""
    column = [tf.TensorSpec([None, 1], name=name) for name in ("x", "start", "state")]

    @tf.function(input_signature=column)
    def serve(x: tf.Tensor, start: tf.Tensor, state: tf.Tensor) -> dict[str, tf.Tensor]:
        out = x + state * (1 - start)
        return {"out": out, "state_out": tf.identity(out)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes models, each of them once: `zoo(make, path, …)` puts what `make(path, …)` made at that path."""
    made: dict[Any, Path] = {}

    def put(make: Any, path: Path, *arguments: Any) -> None:
        key = (make, *arguments)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("zoo") / "model"
            make(made[key], *arguments)
        if made[key].is_dir():
            shutil.copytree(made[key], path)
        else:
            shutil.copy(made[key], path)

    return put


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "m", TensorFlowBackend())
