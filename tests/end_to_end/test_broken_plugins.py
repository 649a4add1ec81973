"""Plugins that are broken, missing or at odds with each other, installed beside the sound ones."""

import os
import subprocess
from pathlib import Path

import pytest

from ..fork_server import NAIAD, run_forked
from .conftest import Start

BROKEN = {
    "exits": ("import sys; sys.exit(3)", "SystemExit"),
    "has a misspelt hook": ("import naiad\n@naiad.hookimpl\ndef naiad_backend():\n    return []", "naiad_backend"),
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
    """In a new interpreter, which has imported no plugin."""
    variables = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run([NAIAD, *words], env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("source", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_is_named_and_the_others_serve(
    start: Start, repository: Path, installed: Path, source: str, message: str
) -> None:
    install(installed, "broken", source)

    running = start(PYTHONPATH=str(installed))
    answer = running.infer("echo", 1)
    listed = run_forked(["plugins"], os.environ | {"PYTHONPATH": str(installed)})

    assert (answer.status, listed.returncode) == (200, 0)
    for output in (running.log, listed.stdout):
        (line,) = (line for line in output.splitlines() if "broken" in line and message in line)
        assert "skipped" in line
    assert "naiad-broken" in listed.stdout
    assert "Traceback" not in running.log + listed.stdout + listed.stderr
    running.stop()


def test_the_hooks_of_start_up_are_called_once(start: Start, repository: Path, installed: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    note = f"with open({str(calls)!r}, 'a') as file:\n        file.write('called ')"
    install(installed, "noting", f"import naiad\n@naiad.hookimpl\ndef naiad_backends():\n    {note}\n    return []")

    running = start(PYTHONPATH=str(installed))

    assert running.infer("echo", 1).status == 200
    assert calls.read_text() == "called "
    running.stop()


def test_a_server_without_a_frontend_says_why_it_has_none(repository: Path, installed: Path) -> None:
    for name in ("naiad_http", "naiad_grpc", "naiad_metrics", "naiad_dashboard"):
        (installed / f"{name}.py").write_text("raise ImportError('a library is missing')")

    plain, with_option = run(installed, "serve", repository), run(installed, "serve", repository, "--http-port=0")

    for done, status in ((plain, 1), (with_option, 2)):
        assert done.returncode == status
        assert "naiad-http would " in done.stderr
        assert ": ImportError: a library is missing" in done.stderr
        assert "Traceback" not in done.stderr
    assert "unknown option --http-port" in with_option.stderr
