"""Modules in a model's own process: Python's own imports find those beside model.py, and those of Naiad are frozen."""

from pathlib import Path

import numpy as np

from .conftest import Serve, Write

ONE = np.ones(2, np.float32)
MODEL = """
    import builtins, gc, importlib, pickle, random, sys
    import numpy as np
    import triton_python_backend_utils as pb_utils
    import helper, shared.inner
    from helper import Kept

    class Own:
        pass

    class TritonPythonModel:
        def execute(self, requests):
            assert __import__ is builtins.__import__ and "__import__" not in globals()
            assert importlib.import_module("helper") is helper
            assert helper.model() is sys.modules[__name__]
            assert type(pickle.loads(pickle.dumps(Own()))) is Own
            assert Kept.__module__ == "helper" and type(pickle.loads(pickle.dumps(Kept()))) is Kept
            assert hasattr(random, "random"), random
            assert gc.isenabled() and gc.get_freeze_count() > 10_000
            x = np.full(2, helper.VALUE + shared.inner.VALUE, np.float32)
            return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]) for _ in requests]
"""
NEIGHBOUR = """
import triton_python_backend_utils as pb_utils
VALUE = NUMBER
class Kept:
    pass
def model():
    import model
    pb_utils.Logger.log_warn("from the helper")
    return model
"""


def write_with_neighbours(write: Write, name: str, number: int) -> Path:
    folder = write(name, MODEL)
    (folder / "1" / "helper.py").write_text(NEIGHBOUR.replace("NUMBER", str(number)))
    (folder / "1" / "random.py").write_text("")  # the standard library keeps its names
    (folder / "shared").mkdir()
    (folder / "shared" / "__init__.py").touch()
    (folder / "shared" / "inner.py").write_text("VALUE = 100")
    return folder


def test_modules_beside_the_model_are_imported_as_in_any_program(write: Write, served: Serve) -> None:
    first, second = (write_with_neighbours(write, name, number) for number, name in enumerate(("first", "second"), 1))

    with served(first, second) as client:
        assert client["first"].infer(X=ONE)["Y"].tolist() == [101, 101]
        assert client["second"].infer(X=ONE)["Y"].tolist() == [102, 102]

    assert not list(first.rglob("__pycache__"))
