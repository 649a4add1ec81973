"""The page about using Naiad from Python: its program runs and prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
QUIET = {"TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONWARNINGS": "ignore"}
"""TensorFlow, which serves one of the examples, says otherwise on stderr that it uses oneDNN. It also imports requests:
its filter of a warning is lost when another thread, which loads another model, restores the filters at that moment."""


def test_the_program_of_the_page_prints_what_the_page_says() -> None:
    page = (PROJECT / "docs" / "python.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```\n(\[.*?)```", page, re.DOTALL)
    subprocess.run([sys.executable, "examples/build.py"], cwd=PROJECT, check=True, capture_output=True)

    command, environment = [sys.executable, "-c", program], os.environ | QUIET
    ran = subprocess.run(command, cwd=PROJECT, env=environment, check=False, capture_output=True, text=True)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == printed
