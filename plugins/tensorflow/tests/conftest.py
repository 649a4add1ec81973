"""TensorFlow models made in code, and the backend that loads them without a server."""

import shutil
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from naiad_tensorflow.backend import TensorFlowBackend
from naiad_tensorflow.runtime import runtime
from naiad_testing.workbench import Workbench


class TensorFlow:
    """TensorFlow, or a module of it, imported when a test uses it first: it takes 6 s, and all tests are collected."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for marks of its own
            raise AttributeError(name)
        return reduce(getattr, (*self._modules, name), runtime())  # which keeps its deprecations out of the log


tf: Any = TensorFlow()
v1: Any = TensorFlow("compat", "v1")


def module_add_sub(columns: int = 16) -> Any:
    """sum = (a + b) * weight, difference = a - b, over FP32[n, columns]; `double` is a signature of its own."""
    module = tf.Module()
    module.weight = tf.Variable(1.0)
    a, b = (tf.TensorSpec([None, columns], name=name) for name in ("a", "b"))
    module.serve = tf.function(
        lambda a, b: {"sum": (a + b) * module.weight, "difference": a - b}, input_signature=[a, b]
    )
    module.double = tf.function(lambda a: {"twice": a + a}, input_signature=[a])
    return module


def ragged(path: Path) -> None:
    """SUM = of each request's elements of IN, whose count OFFSETS accumulates."""

    @tf.function(input_signature=[tf.TensorSpec([None], name="IN"), tf.TensorSpec([None], tf.int32, name="OFFSETS")])
    def serve(values: Any, offsets: Any) -> dict[str, Any]:
        return {"SUM": tf.reduce_sum(tf.RaggedTensor.from_row_splits(values, offsets), axis=1, keepdims=True)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path))


def add_sub(path: Path, columns: int = 16) -> None:
    """A SavedModel of TensorFlow 2."""
    module = module_add_sub(columns)
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.serve, "doubled": module.double})


def old_add_sub(path: Path, tag: str = "serve") -> None:
    """The same as a SavedModel of TensorFlow 1, with a variable that an operation sets to 10."""
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = (v1.placeholder(tf.float32, [None, 16], name=name) for name in ("a", "b"))
        weight = v1.get_variable("weight", initializer=1.0)
        v1.assign(weight, 10.0, name="make_it_ten")
        outputs = {"sum": (a + b) * weight, "difference": a - b}
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"a": a, "b": b}, outputs)
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


def identity(path: Path, dtype: str, columns: int | None = 3) -> None:
    """y = x, over [n, columns]; `dtype` is TensorFlow's name."""

    @tf.function(input_signature=[tf.TensorSpec([None, columns], getattr(tf, dtype), name="x")])
    def serve(x: Any) -> dict[str, Any]:
        return {"y": tf.identity(x)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


def look_up(path: Path) -> None:
    """y = row x of a table of four: fails for an index of 4 and more."""

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.int64, name="x")])
    def serve(x: Any) -> dict[str, Any]:
        return {"y": tf.gather(tf.constant([10.0, 11.0, 12.0, 13.0]), x)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


def accumulator(path: Path) -> None:
    """A model of sequences: out = x + state where the sequence does not start, and state_out = out."""
    column = [tf.TensorSpec([None, 1], name=name) for name in ("x", "start", "state")]

    @tf.function(input_signature=column)
    def serve(x: Any, start: Any, state: Any) -> dict[str, Any]:
        out = x + state * (1 - start)
        return {"out": out, "state_out": tf.identity(out)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(path), signatures=serve)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes models, each of them once: `zoo(make, path, …)` puts what `make(path, …)` made at that path."""
    folders: dict[Any, Path] = {}

    def put(make: Any, path: Path, *arguments: Any) -> None:
        key = (make, *arguments)
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("zoo") / "model"
            make(folders[key], *arguments)
        if folders[key].is_dir():
            shutil.copytree(folders[key], path)
        else:
            shutil.copy(folders[key], path)

    return put


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "m", TensorFlowBackend())
