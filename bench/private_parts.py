"""What the private parts of frameworks save: CPU time with them, and with the public interface that replaces them.

`onnx` reads the interface of a model file of 540 MB. `tensorflow` and `aoti` execute a layer of 16 x 16 for one
request. `lock` executes the benchmark's model at batch 32 in a package of AOTInductor: PyTorch's own loader holds the
interpreter's lock for as long. Best of several rounds, in which both ways take turns.
"""

import argparse
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from unittest.mock import patch

import numpy as np
from naiad import Request, Tensor
from naiad.backend import Batch

from frameworks import FRAMEWORKS
from frameworks.framework import MLP, Framework
from overhead import instance_of

_LARGE = (8192, 8192, 8192, 512)
_SMALL = (16, 16)
_PUBLIC = {
    "onnx": "naiad_onnx.sessions",
    "tensorflow": "naiad_tensorflow.instance",
    "aoti": "naiad_torch.unlocked",
}
"""The modules whose `TESTED_VERSIONS` are emptied for the public way."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="what to measure (default: all)")
    for part in parser.parse_args().parts or _PARTS:
        with TemporaryDirectory() as folder:
            print(f"{part:12} {_PARTS[part](Path(folder))}", flush=True)


def _onnx(folder: Path) -> str:
    from naiad_onnx.parameters import RunSettings
    from naiad_onnx.sessions import read_interface

    path = FRAMEWORKS["onnx"].build(folder / "m", _LARGE)
    private, public = _both("onnx", lambda: lambda: read_interface(path, "m", RunSettings()), rounds=3, calls=1)
    return f"{private:.2f} s, publicly {public:.2f} s"


def _small(name: str, folder: Path) -> str:
    framework = FRAMEWORKS[name]
    framework.build(folder / "m", _SMALL)
    _keep_the_lock(folder / "m")
    private, public = _both(name, lambda: _execution(framework, folder / "m", _SMALL, 1), rounds=30, calls=500)
    return f"{1e6 * private:.1f} µs, publicly {1e6 * public:.1f} µs"


def _lock(folder: Path) -> str:
    framework = FRAMEWORKS["aoti"]
    framework.build(folder / "m", MLP)
    execute = _execution(framework, folder / "m", MLP, 32)
    return f"{1e3 * min(_seconds(execute, 20) for _ in range(10)):.1f} ms of a held lock"


def _both(name: str, make: Callable[[], Callable[[], object]], rounds: int, calls: int) -> tuple[float, float]:
    """The CPU seconds of a call with the private parts and without."""
    private = make()
    with _public_only(name):
        public = make()
        public()  # TensorFlow prepares its calls with the first one
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        best[0] = min(best[0], _seconds(private, calls))
        with _public_only(name):
            best[1] = min(best[1], _seconds(public, calls))
    return best[0], best[1]


@contextmanager
def _public_only(name: str) -> Iterator[None]:
    """No release of the framework is a tested one."""
    with patch.object(importlib.import_module(_PUBLIC[name]), "TESTED_VERSIONS", ()):
        yield


def _execution(framework: Framework, folder: Path, widths: Sequence[int], rows: int) -> Callable[[], object]:
    instance = instance_of(importlib.import_module(framework.plugin), folder / "1" / framework.file)
    request = Request("m", {"x": Tensor.of("x", np.ones((rows, widths[0]), np.float32))})
    return lambda: instance.execute(Batch([request], [rows]))


def _keep_the_lock(folder: Path) -> None:
    """The configuration without RELEASE_INTERPRETER_LOCK."""
    config = folder / "config.pbtxt"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if "RELEASE_INTERPRETER_LOCK" not in line))


def _seconds(work: Callable[[], object], calls: int) -> float:
    began = process_time()
    for _ in range(calls):
        work()
    return (process_time() - began) / calls


_PARTS: dict[str, Callable[[Path], str]] = {
    "onnx": _onnx,
    "tensorflow": lambda folder: _small("tensorflow", folder),
    "aoti": lambda folder: _small("aoti", folder),
    "lock": _lock,
}

if __name__ == "__main__":
    main()
