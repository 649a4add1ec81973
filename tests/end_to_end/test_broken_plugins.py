"""Plugins that are broken, missing or at odds with each other, installed beside the sound ones."""

import os
import subprocess
from pathlib import Path

import pytest

from . import models
from .conftest import Start
from .running import NAIAD

SOUND_BACKEND = """
from types import SimpleNamespace
import naiad
from naiad.backend import BackendTraits

class Backend:
    traits = BackendTraits(name="abacus", files={"beads": ""})
    def complete(self, context):
        return context.config
    def load(self, context):
        raise RuntimeError("the beads are stuck")

@naiad.hookimpl
def naiad_backends():
    return [Backend()]
"""

FRONTEND = """
import naiad

class Frontend:
    name = "carrier"
    async def start(self, server):
        raise RuntimeError("the pigeons are out")
    async def stop(self, grace):
        pass

@naiad.hookimpl
def naiad_frontends():
    return [Frontend()]
"""

BROKEN = {
    "does not import": ("import no_such_module", "No module named 'no_such_module'"),
    "has a syntax error": ("def broken(:", "SyntaxError"),
    "exits": ("import sys; sys.exit(3)", "SystemExit"),
    "raises": ("raise ValueError('broken on purpose')", "broken on purpose"),
    "has a misspelt hook": ("import naiad\n@naiad.hookimpl\ndef naiad_backend():\n    return []", "naiad_backend"),
    "has a hook that raises": (
        "import naiad\n@naiad.hookimpl\ndef naiad_backends():\n    raise ValueError('hooked')",
        "hooked",
    ),
    "offers nonsense": ("import naiad\n@naiad.hookimpl\ndef naiad_backends():\n    return [1]", "naiad_backends"),
    "offers no list": ("import naiad\n@naiad.hookimpl\ndef naiad_options():\n    return 7", "naiad_options"),
}


def install(folder: Path, name: str, source: str) -> None:
    """A distribution `naiad-<name>` with a plugin of that name, as an installer would leave it on the path."""
    (folder / f"naiad_{name}.py").write_text(source)
    described = folder / f"naiad_{name}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: naiad-{name}\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[naiad]\n{name} = naiad_{name}\n")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder on the path of Python, to install plugins into."""
    folder = tmp_path / "installed"
    folder.mkdir()
    return folder


def run(installed: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run([NAIAD, *words], env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("source", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_is_named_and_the_others_serve(
    start: Start, repository: Path, installed: Path, source: str, told: str
) -> None:
    install(installed, "broken", source)

    running = start(PYTHONPATH=str(installed))
    answer = running.infer("echo", 1)
    listed = run(installed, "plugins")

    assert (answer.status, listed.returncode) == (200, 0)
    for place in (running.log, listed.stdout):
        (line,) = (line for line in place.splitlines() if "broken" in line and told in line)
        assert "skipped" in line
    assert "naiad-broken" in listed.stdout
    assert "Traceback" not in running.log + listed.stdout + listed.stderr
    running.stop()


def test_a_model_that_needs_a_broken_plugin_says_which(start: Start, repository: Path, installed: Path) -> None:
    install(installed, "broken", "import no_such_module")
    models.write(repository, "counted", models.ECHO, 'backend: "broken"')

    running = start("--exit-on-error=false", PYTHONPATH=str(installed))
    (entry,) = running.entries("counted")

    assert (entry["state"], running.infer("echo", 1).status) == ("UNAVAILABLE", 200)
    assert "'broken'" in entry["reason"]
    assert "No module named 'no_such_module'" in entry["reason"]


def test_a_sound_plugin_that_does_not_import_here_is_not_told_to_be_installed_again(
    start: Start, repository: Path, installed: Path
) -> None:
    (installed / "naiad_onnx.py").write_text("raise ImportError('a library is missing')")
    models.write_onnx(repository, "scores", models.onnx_scores())

    running = start("--exit-on-error=false", PYTHONPATH=str(installed))
    (entry,) = running.entries("scores")

    assert "naiad-onnx would offer it, but was skipped: ImportError: a library is missing" in entry["reason"]
    assert "pip install" not in entry["reason"]
    assert running.infer("echo", 1).status == 200


def test_a_server_without_a_frontend_says_why_it_has_none(repository: Path, installed: Path) -> None:
    for name in ("naiad_http", "naiad_grpc", "naiad_metrics"):
        (installed / f"{name}.py").write_text("raise ImportError('a library is missing')")

    plain, with_option = run(installed, "serve", repository), run(installed, "serve", repository, "--http-port=0")

    for done in (plain, with_option):
        assert done.returncode == 1
        assert "naiad-http would offer it, but was skipped: ImportError: a library is missing" in done.stderr
        assert "Traceback" not in done.stderr
    assert "unknown option --http-port" in with_option.stderr


def test_a_backend_that_breaks_while_it_loads_harms_its_own_models_alone(
    start: Start, repository: Path, installed: Path
) -> None:
    install(installed, "abacus", SOUND_BACKEND)
    (repository / "beads" / "1").mkdir(parents=True)
    (repository / "beads" / "1" / "beads").touch()
    sides = models.tensors("input", {"x": "FP32"}, "1") + models.tensors("output", {"y": "FP32"}, "1")
    (repository / "beads" / "config.pbtxt").write_text(f'backend: "abacus" {sides}')

    running = start("--exit-on-error=false", PYTHONPATH=str(installed))
    (entry,) = running.entries("beads")

    assert "RuntimeError: the beads are stuck" in entry["reason"]
    assert running.infer("echo", 1).status == 200
    running.stop()


def test_two_plugins_that_offer_the_same_are_both_named(repository: Path, installed: Path) -> None:
    install(installed, "abacus", SOUND_BACKEND)
    install(installed, "counting", SOUND_BACKEND)

    done = run(installed, "serve", repository)

    assert done.returncode == 1
    assert "'abacus' (naiad-abacus 1.0)" in done.stderr
    assert "'counting' (naiad-counting 1.0)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_frontend_that_cannot_start_ends_the_server_with_its_name(repository: Path, installed: Path) -> None:
    install(installed, "carrier", FRONTEND)

    done = run(installed, "serve", repository, "--http-port=0", "--http-address=127.0.0.1")

    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if "pigeons" in line and "carrier" in line)
    assert "RuntimeError: the pigeons are out" in line
