"""The example repository: it builds, a real server serves all of it, and the example client gets sensible answers."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.http as client

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MODELS = sorted(folder.name for folder in (EXAMPLES / "models").iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example repository as a clean clone has it, and then built."""
    models = tmp_path_factory.mktemp("examples") / "models"
    shutil.copytree(EXAMPLES / "models", models, ignore=shutil.ignore_patterns("*.onnx", "labels.txt", "__pycache__"))
    build(models)
    return models


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    """The module that draws pictures for the classifier."""
    spec = importlib.util.spec_from_file_location("drawing", EXAMPLES / "drawing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(models: Path) -> str:
    """What `examples/build.py` says when it builds into that repository."""
    command = [sys.executable, EXAMPLES / "build.py", models]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_building_again_leaves_the_files_alone(built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*")}

    told = build(built)

    assert told == ""
    assert {path: path.stat().st_mtime_ns for path in built.rglob("*")} == before


def test_the_labels_in_the_repository_are_those_that_are_built(built: Path) -> None:
    assert (built / "shapes" / "labels.txt").read_text() == (EXAMPLES / "models" / "shapes" / "labels.txt").read_text()


def test_the_client_gets_a_sensible_answer_from_every_model(serve: "Serve", built: Path) -> None:
    url = serve(built).url.removeprefix("http://")

    command = [sys.executable, "-W", "error", EXAMPLES / "client.py", "--url", url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert [line.partition(":")[0] for line in told.splitlines() if re.match(r"\w+: ", line)] == [
        "shapes",
        "word_ids",
        "celsius",
        "nearest_city",
        "journey",
        "weather_card",
        "add_sub",
        "till",
        "accumulator",
        "text_embedding",
        "typewriter",
    ]
    assert len(re.findall(r"drawn: (\w+ \w+) +seen: \1 \d+%", told)) == 3
    assert "{'cat': 2, 'sleeps': 6, 'while': -1, 'bird': 1, 'sings': 5}" in told
    assert "37 °C is 98.6 °F" in told
    assert "Mount Fuji: Tokyo, 94 km" in told
    assert "from London to Tokyo" in told
    assert "near Tokyo it is 26.6 °F" in told
    assert "[1. 2. 3. 4.] + [10. 20. 30. 40.] = [11. 22. 33. 44.]" in told
    assert "Ann: 1.50 3.50 4.00" in told
    assert "Bob: 10.00 30.00" in told
    assert re.search(r"5 makes 5\n +7 makes 12\n +1 makes 13\n", told)
    assert "8 responses: every word is a response of its own" in told
    assert re.search(r"64 requests ran: .*\d+ in batches of ([2-9]|\d\d)", told)


def test_the_client_leaves_no_model_out() -> None:
    source = (EXAMPLES / "client.py").read_text()

    assert [name for name in MODELS if f'"{name}"' not in source] == []


def test_the_classifier_names_nearly_every_new_picture(serve: "Serve", built: Path, drawing: ModuleType) -> None:
    chance = np.random.default_rng(99)
    labels = [label for label in drawing.LABELS for _ in range(5)]
    pictures = np.stack([drawing.draw(label, chance) for label in labels])
    best = client.InferRequestedOutput("probabilities", class_count=1)

    with client.InferenceServerClient(serve(built).url.removeprefix("http://")) as server:
        seen = []
        for start in range(0, len(labels), 15):
            given = client.InferInput("image", [15, 32, 32, 3], "UINT8")
            given.set_data_from_numpy(pictures[start : start + 15])
            answer = server.infer("shapes", [given], outputs=[best]).as_numpy("probabilities")
            seen += [each.decode().split(":")[2] for each in answer[:, 0]]

    assert sum(name == label for name, label in zip(seen, labels, strict=True)) >= 42
