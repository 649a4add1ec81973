"""The program on the page about shared memory, run against a whole server."""

import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from .running import Running

PROJECT = Path(__file__).parents[2]


def test_the_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "shared_memory.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```text\n(\[\[.*?)```", page, re.DOTALL)
    example = tmp_path / "models" / "add_sub" / "1"
    example.mkdir(parents=True)
    (example / "model.py").write_bytes((PROJECT / "examples/models/add_sub/1/model.py").read_bytes())
    (example.parent / "config.pbtxt").write_bytes((PROJECT / "examples/models/add_sub/config.pbtxt").read_bytes())
    running = Running(tmp_path / "models", tmp_path / "log", "--allow-client-shm=true")

    try:
        message = program.replace("localhost:8000", running.url).replace('"/numbers"', f'"/naiad_test_{uuid4().hex}"')
        ran = subprocess.run([sys.executable, "-c", message], check=False, capture_output=True, text=True, timeout=60)
    finally:
        running.kill()

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == printed
