"""The pictures of the documentation are those that `naiad simulate` draws now, by the commands that the pages show."""

import re
import shlex
from pathlib import Path

import pytest

from .fork_server import run_forked

ROOT = Path(__file__).parents[1]
PAGES = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
COMMANDS = {
    name: line
    for line, name in re.findall(r"^naiad (simulate .* --svg docs/pictures/([\w-]+)\.svg.*)$", PAGES, re.MULTILINE)
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_picture_is_what_its_command_draws(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = tmp_path / "drawn.svg"
    words = [str(drawn) if word.endswith(".svg") else word for word in shlex.split(COMMANDS[name])]

    monkeypatch.chdir(ROOT)

    done = run_forked(words)

    assert (done.returncode, done.stderr) == (0, "")
    assert drawn.read_text() == (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
    shown = [line for line in PAGES.splitlines() if re.match(r"(\d+ slot \d+|ms) ", line)]
    if "--timeline" in words:
        assert [line.rstrip() for line in done.stdout.splitlines()][-len(shown) :] == shown


def test_every_recorded_history_is_drawn() -> None:
    recorded = {path.stem for path in (ROOT / "docs" / "pictures").glob("*.csv")}

    assert recorded == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_picture_is_shown(name: str) -> None:
    assert f"(pictures/{name}.svg)" in PAGES
