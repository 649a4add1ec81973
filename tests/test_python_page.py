"""The page about using Naiad from Python: its program runs and prints what the page says."""

import shutil
import sys
from pathlib import Path

from .reading import DOCS, Reader, assert_printed, blocks_of


def test_the_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    program, printed = blocks_of("python.md")
    model = "examples/models/celsius"  # those of frameworks take long to load, and have tests of their own
    shutil.copytree(DOCS.parent / model, tmp_path / model)
    (tmp_path / "program.py").write_text(program.text)

    ran = Reader(tmp_path, Path(sys.executable).parent).bash("python program.py")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert_printed(ran.stdout, printed.text)
