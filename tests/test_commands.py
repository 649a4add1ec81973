"""The other commands, as processes: against a real server, and with plugins that are broken or clash."""

import json
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .fork_server import run_forked
from .written import write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

SUM = """
from typing import NamedTuple

from naiad_custom import BYTES, FP32, Array, model

class Answer(NamedTuple):
    total: Array[FP32, 1]
    text: Array[BYTES, 1]

@model
def weigh(numbers: Array[FP32, -1], text: Array[BYTES, 1]) -> Answer:
    return Answer(numbers.sum(keepdims=True), text)
"""


def run(*words: str | Path, **environment: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `naiad` with these words."""
    ran = run_forked(words, os.environ | environment)
    return ran.returncode, ran.stdout, ran.stderr


def install(folder: Path, distribution: str, entry_point: str) -> None:
    """An installed distribution, as far as its metadata, with an entry point of the group naiad."""
    described = folder / f"{distribution.replace('-', '_')}-3.1.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 3.1\n")
    (described / "entry_points.txt").write_text(f"[naiad]\n{entry_point}\n")


def test_a_running_server_is_listed_and_asked(serve: "Callable[..., ServerProcess]", tmp_path: Path) -> None:
    write_model(tmp_path / "models", "weigh", SUM)
    np.save(tmp_path / "numbers.npy", np.array([1, 2, 3.5], np.float32))
    url = serve(tmp_path / "models").url

    listed = run("models", "--url", url)
    printed = run("infer", "weigh", "--url", url, "--input", f"numbers=@{tmp_path}/numbers.npy", "--input", "text=a, b")
    refused = run("infer", "weigh", "--url", url)

    assert listed == (0, "Model\tVersion\tState\tReason\nweigh\t1\tREADY\n", "")
    assert printed == (0, "weigh version 1\ntotal FP32[1]\n[6.5]\ntext BYTES[1]\n['a, b']\n", "")
    assert refused == (2, "", "naiad infer: no --input is given; the model takes numbers FP32[-1], text BYTES[1]\n")


def test_a_repository_is_checked_with_the_real_backends(tmp_path: Path) -> None:
    for name, text in (("weigh", SUM), ("typo", SUM.replace("FP32, -1", "FP33, -1"))):
        write_model(tmp_path, name, text)

    status, message, _ = run("check", tmp_path)
    listed = json.loads(run("check", tmp_path, "--json")[1])

    assert status == 1
    assert "weigh: ok\n" in message
    assert "typo: 1 problem\n" in message
    assert "FP33" in message
    assert message.endswith("2 models, 1 with problems\n")
    assert [(each["name"], bool(each["problems"])) for each in listed] == [("typo", True), ("weigh", False)]


def test_every_installed_plugin_is_listed_with_what_it_offers() -> None:
    status, message, complaints = run("plugins")

    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in message.splitlines()}
    assert (status, complaints) == (0, "")
    assert set(rows) == {"Plugin", *(point.name for point in metadata.entry_points(group="naiad"))}
    assert rows["custom"] == [
        f"naiad-custom {metadata.version('naiad-custom')}",
        "backend, service",
        "python, custom",
    ]
    assert rows["onnx"][2] == f"onnxruntime (onnxruntime {metadata.version('onnxruntime')})"
    assert rows["torch"][2] == f"pytorch (torch {metadata.version('torch')})"
    assert rows["tensorflow"][2] == f"tensorflow (tensorflow-cpu {metadata.version('tensorflow-cpu')})"
    assert rows["openvino"][2] == f"openvino (openvino {metadata.version('openvino')})"
    assert rows["tensorrt"][2].startswith("tensorrt (tensorrt_lean_cu12_bindings 1")
    assert rows["caffe2"][2] == f"caffe2 (onnxruntime {metadata.version('onnxruntime')})"
    assert rows["explain"][1:] == ["stage", "explain"]
    assert rows["loop-handoff"][1:] == ["worker, runner", "loop-handoff, event loop"]
    assert rows["http"][1:] == ["frontend", "http"]
    assert rows["cache"][1:] == ["service, stage", "cache"]
    assert rows["cache-local"][1:] == ["cache", "local"]
    assert rows["ray"][1:] == ["command", "ray"]
    assert rows["cache-redis"][1:] == ["cache", "redis"]
    assert rows["scheduler-dynamic"][1:] == ["scheduler", "dynamic"]
    assert rows["scheduler-ensemble"][1:] == ["servable", "ensemble"]
    assert rows["scheduler-sequence"][1:] == ["scheduler", "sequence"]
    assert rows["shared-memory"][1:] == ["service", "shared-memory"]
    assert rows["scheduler-default"][1:] == ["scheduler", "default"]
    assert rows["warmup"][1:] == ["warmup", "samples"]


def test_a_broken_plugin_is_listed_with_the_reason_and_the_others_stay(tmp_path: Path) -> None:
    install(tmp_path, "naiad-abacus", "abacus = no_such_module")

    status, message, _ = run("plugins", PYTHONPATH=str(tmp_path))

    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in message.splitlines()}
    assert status == 0
    assert rows["abacus"][:2] == ["naiad-abacus 3.1", "skipped"]
    assert rows["abacus"][2].startswith("ModuleNotFoundError: No module named 'no_such_module'")
    assert rows["custom"][1] == "backend, service"
    listed = {each["name"]: each for each in json.loads(run("plugins", "--json", PYTHONPATH=str(tmp_path))[1])}
    assert listed["abacus"]["skipped"] == rows["abacus"][2]
    assert (listed["custom"]["skipped"], "python" in str(listed["custom"]["offers"])) == ("", True)


def test_two_plugins_of_one_name_stop_every_command_naming_both(tmp_path: Path) -> None:
    install(tmp_path, "my-custom", "custom = my_custom")

    status, _, message = run("plugins", PYTHONPATH=str(tmp_path))

    assert status == 1
    assert "two distributions have a plugin named 'custom':" in message
    assert "naiad-custom" in message
    assert "my-custom" in message
