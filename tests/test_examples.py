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

from .example_models import BUILT, EXAMPLES, build, built_examples

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]


def module(name: str) -> ModuleType:
    """A module of the examples."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks for its own module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


frameworks = module("frameworks")
drawing = module("drawing")
WRITTEN = tuple(example.name for example in frameworks.EXAMPLES)
MODELS = sorted({*WRITTEN, *(folder.name for folder in (EXAMPLES / "models").iterdir())})


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> Path:
    """The built repository, which other tests have too."""
    return built_examples(request)


def test_what_building_writes_is_not_taken_from_the_checkout() -> None:
    assert set(WRITTEN) <= set(BUILT)


def test_building_again_leaves_the_files_alone(built: Path) -> None:
    before = times_of(built)

    message = build(built)

    assert message == ""
    assert times_of(built) == before


def times_of(models: Path) -> dict[Path, int]:
    """When each file was written; a server of another test may keep bytecode beside them meanwhile."""
    return {each: each.stat().st_mtime_ns for each in models.rglob("*.*") if "__pycache__" not in each.parts}


def test_a_model_whose_framework_is_missing_is_left_out_with_what_to_install(tmp_path: Path) -> None:
    missing = frameworks.Example("beads", "no_such_abacus", "naiad-abacus[cpu]", lambda folder: None)

    message = frameworks.build(missing, tmp_path)

    assert message == "left out beads: it needs no_such_abacus; pip install 'naiad-abacus[cpu]'"
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_written_again_when_its_description_has_changed(built: Path, tmp_path: Path) -> None:
    (example,) = (each for each in frameworks.EXAMPLES if each.name == "daylight")
    shutil.copytree(built / "daylight", tmp_path / "daylight")
    written = tmp_path / "daylight" / "config.pbtxt"
    described = written.read_text()
    written.write_text("# made of an older description\n")

    recorded = [frameworks.build(example, tmp_path), frameworks.build(example, tmp_path)]

    assert recorded == [f"wrote {tmp_path / 'daylight'}", ""]
    assert written.read_text() == described


def test_the_labels_in_the_repository_are_those_that_are_built(built: Path) -> None:
    assert (built / "shapes" / "labels.txt").read_text() == (EXAMPLES / "models" / "shapes" / "labels.txt").read_text()


def test_the_client_gets_a_sensible_answer_from_every_model(serve: "Serve", built: Path) -> None:
    url = serve(built).url.removeprefix("http://")

    command = [sys.executable, "-W", "error", EXAMPLES / "client.py", "--url", url]
    message = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert [line.partition(":")[0] for line in message.splitlines() if re.match(r"\w+: ", line)] == [
        "shapes",
        "word_ids",
        "celsius",
        "nearest_city",
        "journey",
        "weather_card",
        "add_sub",
        "till",
        "accumulator",
        *WRITTEN,
        "text_embedding",
        "typewriter",
    ]
    assert "is not served here" not in message
    assert len(re.findall(r"drawn: (\w+ \w+) +seen: \1 \d+%", message)) == 3
    assert "{'cat': 2, 'sleeps': 6, 'while': -1, 'bird': 1, 'sings': 5}" in message
    assert "37 °C is 98.6 °F" in message
    assert "Mount Fuji: Tokyo, 94 km" in message
    assert "from London to Tokyo" in message
    assert "near Tokyo it is 26.6 °F" in message
    assert "[1. 2. 3. 4.] + [10. 20. 30. 40.] = [11. 22. 33. 44.]" in message
    assert "Ann: 1.50 3.50 4.00" in message
    assert "Bob: 10.00 30.00" in message
    assert re.search(r"5 makes 5\n +7 makes 12\n +1 makes 13\n", message)
    assert "###.....  .##.....  #.#.....  ..##....  ...#...." in message
    assert "'Crème brûlée, in 10 minutes!' -> crème-brûlée-in-10-minutes (5 words)" in message
    assert "'  What is   DLPack?  ' -> what-is-dlpack (3 words)" in message
    assert "Quito: 12.0 h in March, 12.0 h in June, 12.0 h in December" in message
    assert "Tromsø: 12.0 h in March, 24.0 h in June, 0.0 h in December" in message
    assert re.search(r"  \.#{10}\.\n  \.#{10}\.\n  \.##\.{6}##\.\n  \.#{10}\.\n", message)
    assert "8 responses: every word is a response of its own" in message
    assert re.search(r"64 requests ran: .*\d+ in batches of ([2-9]|\d\d)", message)


def test_the_client_says_in_a_sentence_that_there_is_no_server() -> None:
    command = [sys.executable, EXAMPLES / "client.py", "--url", "localhost:1"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.startswith("no server answers at localhost:1: ")
    assert "'make serve'" in done.stderr
    assert done.stderr.endswith("--url\n")


def test_the_client_leaves_no_model_out() -> None:
    source = (EXAMPLES / "client.py").read_text()

    assert [name for name in MODELS if f'"{name}"' not in source] == []


def test_the_classifier_names_nearly_every_new_picture(serve: "Serve", built: Path) -> None:
    chance = np.random.default_rng(99)
    labels = [label for label in drawing.LABELS for _ in range(5)]
    pictures = np.stack([drawing.draw(label, chance) for label in labels])
    best = client.InferRequestedOutput("probabilities", class_count=1)

    url = serve(built, "--model-control-mode=explicit", "--load-model=shapes").url.removeprefix("http://")
    with client.InferenceServerClient(url) as server:
        seen = []
        for start in range(0, len(labels), 15):
            tensor = client.InferInput("image", [15, 32, 32, 3], "UINT8")
            tensor.set_data_from_numpy(pictures[start : start + 15])
            answer = server.infer("shapes", [tensor], outputs=[best]).as_numpy("probabilities")
            seen += [each.decode().split(":")[2] for each in answer[:, 0]]

    assert sum(name == label for name, label in zip(seen, labels, strict=True)) >= 42
