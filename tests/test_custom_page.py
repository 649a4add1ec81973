"""docs/custom.md is read as it stands: its files are written, and the models of them pass the tests of the page."""

import sys
from pathlib import Path

from .reading import Reader, blocks_of


def test_the_models_of_the_page_pass_its_tests(tmp_path: Path) -> None:
    reader = Reader(tmp_path, Path(sys.executable).parent)
    for block in blocks_of("custom.md"):
        if block.path:
            reader.write(block)
    (reader.folder / "models/scale/1/factor.json").write_text("2")

    (reader.folder / "test_scale.py").write_text(
        "def test_scale(naiad_serve):\n"
        "    assert naiad_serve('models/scale').infer(x=[[3] * 16])['output'][0, 0] == 6\n"
    )

    done = reader.bash("naiad check models && pytest -q test_add.py test_scale.py")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 models, 0 with problems" in done.stdout
    assert "7 passed" in done.stdout
