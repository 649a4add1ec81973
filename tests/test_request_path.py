"""`bench/path.py` counts the calls of a request and draws them; the picture of the documentation is not out of date."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"


def counts_of(printed: str) -> tuple[dict[str, int], dict[str, int]]:
    """The calls and the files of each part, as `bench/path.py` prints them."""
    lines = re.findall(r"^(.+): (\d+) calls in (\d+) files", printed, re.MULTILINE)
    return {part: int(calls) for part, calls, _ in lines}, {part: int(files) for part, _, files in lines}


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_calls_of_a_request_are_counted_and_drawn(protocol: str, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "bench" / "path.py", protocol, "--picture", tmp_path / "drawn.svg"]

    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    count = re.search(r"in all: (\d+) calls", printed)
    assert count
    calls, files = counts_of(printed)
    assert sum(calls.values()) == int(count[1])
    assert (calls["kernel"] <= 42, files["kernel"] <= 8) == (True, True), printed
    ours = sum(calls.values()) - calls["backend"] - calls["model"]
    if protocol == "grpc":  # there, asyncio itself is in Python
        ours -= calls["libraries"]
    assert 50 < ours <= {"http": 88, "grpc": 96}[protocol], printed
    assert "naiad/_server/server.py  [loop]\n    Server.submit\n" in printed
    drawn = ET.parse(tmp_path / "drawn.svg")
    texts = [text.text or "" for text in drawn.iter(f"{SVG}text")]
    assert any(text.endswith(f": {count[1]} Python calls") for text in texts)
    assert {"_server/server.py", "scheduler", "model.py"} <= set(texts)


def test_boxes_follow_each_other_and_hold_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from path_picture import Call, picture

    names = [f"Connection.a_function_with_a_name_{number}" for number in range(9)]
    calls = [Call("loop", "frontend (HTTP)", "naiad_http/connection.py", name) for name in [*names, names[0]]]
    calls += [Call("loop", "frontend (HTTP)", "naiad_http/infer.py", "a" * 50)]
    calls += [Call("loop", "libraries", "base_events.py", "BaseEventLoop.call_soon")] * 2
    calls += [Call("instance", "model", "model.py", "execute.<locals>.<listcomp>")]
    calls += [Call("loop", "kernel", "naiad/types.py", "Response.__init__")]

    root = ET.fromstring(picture("A request & its way", calls))

    boxes = [rect for rect in root.iter(f"{SVG}rect") if rect.get("rx")]
    tops = [(int(box.get("y", "")), int(box.get("height", ""))) for box in boxes]
    assert len(boxes) == 3
    assert all(top + height < below for (top, height), (below, _) in pairwise(tops))
    texts = {text.text or "": text for text in root.iter(f"{SVG}text")}
    assert {"A request & its way: 15 Python calls", "libraries", "2 calls", "execute […]", "Response()"} <= set(texts)
    assert f"{names[0].split('.')[1]} ×2," in texts
    right = max(float(text.get("x", "")) + 6.7 * len(line) for line, text in texts.items() if line.startswith("a"))
    assert right <= float(boxes[0].get("x", "")) + float(boxes[0].get("width", ""))


def test_the_files_in_the_picture_are_there() -> None:
    drawn = ET.parse(ROOT / "docs" / "pictures" / "way-of-a-request.svg")
    files = {text.text or "" for text in drawn.iter(f"{SVG}text") if text.get("class") == "f"} - {"model.py"}
    sources = [
        path.as_posix() for group in ("core", "plugins", "frontends") for path in ROOT.glob(f"{group}/*/src/**/*.py")
    ]

    assert files
    assert [file for file in files if not any(path.endswith(f"/{file}") for path in sources)] == []
