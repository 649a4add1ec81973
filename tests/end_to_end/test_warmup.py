"""Warmups of a whole server: what models get before they serve, what the log says meanwhile, and what cannot be."""

import os
import pty
import subprocess
from pathlib import Path

from ..fork_server import NAIAD
from .conftest import Start
from .gates import Gate
from .running import LOCAL

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = """
model_warmup [ {{
  name: "usual" batch_size: {batch} count: {count}
  inputs [ {{ key: "x" value {{ data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }} }} ]
}} ]
"""


def test_a_terminal_of_80_columns_shows_how_far_a_warmup_is(repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits", f'backend: "python" {SAMPLE.format(batch=1, count=2)}')
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    command = [NAIAD, "serve", *LOCAL, "--http-port=0", repository]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)

    written = b""
    while b"waiting for waits (warming up: 1 of 2" not in written:
        written += os.read(ours, 65536)
    gate.open()
    while b"http frontend listens" not in written:
        written += os.read(ours, 65536)
    process.terminate()
    status = process.wait(timeout=60)
    os.close(ours)

    assert status == 0


def test_an_installed_plugin_replays_what_it_has_recorded(start: Start, repository: Path, tmp_path: Path) -> None:
    """As an installed distribution: a folder of the path with its metadata and its module."""
    installed = tmp_path / "installed" / "naiad_recorded_warmup-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: naiad-recorded-warmup\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text("[naiad]\nrecorded-warmup = naiad_recorded_warmup\n")
    source = ROOT / "examples" / "recorded-warmup" / "src"
    recorded = repository / "echo" / "warmup" / "requests"
    recorded.mkdir(parents=True)
    (recorded / "first.json").write_text('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}')
    server = start("--log-verbose=1", PYTHONPATH=f"{installed.parent}:{source}")

    assert server.infer("echo", 1).status == 200

    assert "warmup sample 'first.json'" in server.log
    server.stop()
