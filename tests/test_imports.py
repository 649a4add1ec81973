"""What importing a plugin and listing all of them costs, in fresh interpreters."""

import json
import resource
import subprocess
import sys
from importlib import metadata

import pytest

FRAMEWORKS = ("grpc", "onnx", "onnxruntime", "openvino", "redis", "tensorflow", "torch")
FRAMEWORKS += ("cuda", "tensorrt", "tensorrt_lean_bindings", "tensorrt_rtx_bindings")
PLUGINS = sorted(point.value for point in metadata.entry_points(group="naiad"))


def modules_after(statements: str) -> set[str]:
    """The names of the top-level modules that these statements import."""
    message = "import json, sys; sys.stderr.write(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    ran = subprocess.run([sys.executable, "-c", f"{statements}\n{message}"], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stderr))


IMPORTS = """
import json, os, sys, naiad
for name in sys.argv[1:]:
    if not os.fork():
        __import__(name)
        print(json.dumps([name, [each.split(".")[0] for each in sys.modules]]), flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{name} cannot be imported")
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """The top-level modules that each plugin imports, each in a fork of an interpreter that has imported `naiad`."""
    ran = subprocess.run([sys.executable, "-c", IMPORTS, *PLUGINS], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return dict(json.loads(line) for line in ran.stdout.splitlines())


@pytest.mark.parametrize("plugin", PLUGINS)
def test_importing_a_plugin_imports_no_framework(imported: dict[str, list[str]], plugin: str) -> None:
    assert plugin.split(".")[0] in imported[plugin]
    assert {*FRAMEWORKS}.isdisjoint(imported[plugin])


def test_importing_naiad_imports_little() -> None:
    imported = modules_after("import naiad")

    assert imported.isdisjoint({*FRAMEWORKS, "asyncio", "google", "numpy", "opentelemetry", "rich"})


def test_listing_the_plugins_imports_no_framework() -> None:
    imported = modules_after("from naiad_cli.main import main; main(['plugins'])")

    assert imported.isdisjoint({*FRAMEWORKS, "rich"})


def test_listing_the_plugins_takes_little_more_than_the_imports_that_it_needs() -> None:
    """Three to six times the processor time of numpy's import; one framework alone takes ten times that."""
    numpy = cpu_seconds([sys.executable, "-c", "import numpy"])

    listing = cpu_seconds([sys.executable, "-m", "naiad_cli.main", "plugins"])

    assert listing < 10 * numpy


def cpu_seconds(command: list[str]) -> float:
    """The processor time of a command, the least of three runs."""
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)
