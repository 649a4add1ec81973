"""The page about implicit state: each of its examples is served as it is written, and goes as its table says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import naiad_onnx
import naiad_scheduler_sequence
from naiad_testing import serve

PAGE = (Path(__file__).parents[1] / "docs" / "implicit_state.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))
SHOWN = """
output [
  { name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "SEEN_STATE" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "SEEN_START" data_type: TYPE_INT32 dims: [ 1 ] }
]
"""
STATE = re.compile(r"  state \[.*?\n  \]\n", re.DOTALL)


def blocks(section: str) -> list[str]:
    return re.findall(r"```pbtxt(?: part)?\n(.*?)```", SECTIONS[section], re.DOTALL)


def rows(section: str) -> list[dict[str, str]]:
    """The table of a section, row by row, by the names in its head."""
    lines = re.findall(r"^\|(.*)\|$", SECTIONS[section], re.MULTILINE)
    head, _, *rest = [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]
    return [dict(zip(head, cells, strict=True)) for cells in rest]


def written(section: str) -> str:
    """The whole configuration of a section: that of the first, with the state of the section in its place."""
    (whole,) = blocks("Without an initial state")
    if section != "Without an initial state":
        (state,) = blocks(section)
        whole, changed = STATE.subn(state, whole)
        assert changed == 1
    return whole + SHOWN


def accumulator(uses_start: bool) -> onnx.ModelProto:
    """The accumulator of the page, which shows besides what it was given."""
    nodes = [
        helper.make_node("Cast", ["START"], ["starts"], to=TensorProto.BOOL),
        helper.make_node("Add", ["INPUT", "INPUT_STATE"], ["sum"]),
        helper.make_node("Where", ["starts", "INPUT" if uses_start else "sum", "sum"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
        helper.make_node("Identity", ["INPUT_STATE"], ["SEEN_STATE"]),
        helper.make_node("Identity", ["START"], ["SEEN_START"]),
    ]
    taken, produced = (
        [helper.make_tensor_value_info(name, TensorProto.INT32, ["n", 1]) for name in names]
        for names in (["INPUT", "INPUT_STATE", "START"], ["OUTPUT", "OUTPUT_STATE", "SEEN_STATE", "SEEN_START"])
    )
    graph = helper.make_graph(nodes, "accumulator", taken, produced)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def ask(client: Any, number: int, first: bool) -> dict[str, Any]:
    request = client.request(INPUT=np.array([[number]], np.int32))
    request.correlation_id, request.sequence_start = 1, first
    return {name: tensor.array for name, tensor in client.send(request).outputs.items()}


@pytest.mark.parametrize("section", ["Without an initial state", "From zeros", "From a file"])
def test_each_way_to_begin_goes_as_its_table_says(tmp_path: Path, section: str) -> None:
    model = tmp_path / "accumulator"
    (model / "1").mkdir(parents=True)
    (model / "initial_state").mkdir()
    (model / "initial_state" / "initial_state_data").write_bytes(b"d\0\0\0")
    (model / "config.pbtxt").write_text(written(section))
    onnx.save(accumulator(uses_start=section == "Without an initial state"), model / "1" / "model.onnx")

    with serve(model, plugins=[naiad_onnx, naiad_scheduler_sequence]) as client:
        for number, row in enumerate(rows(section)):
            answer = ask(client, int(row["INPUT"]), first=number == 0)

            seen = {"INPUT_STATE": "SEEN_STATE", "START": "SEEN_START"}
            report = {name: cell.partition(",")[0] for name, cell in row.items() if name not in ("request", "INPUT")}
            assert {name: str(answer[seen.get(name, name)].item()) for name in report} == report
            assert {array.shape for array in answer.values()} == {(1, 1)}
        assert number >= 1


def test_a_state_that_is_listed_as_an_output_is_seen_by_clients(tmp_path: Path) -> None:
    (fragment,) = re.findall(r"## Seeing a state\n.*?```pbtxt\n(.*?)```", PAGE, re.DOTALL)
    (whole,) = blocks("Without an initial state")
    (old,) = re.findall(r"^output .*\n", whole, re.MULTILINE)
    model = tmp_path / "accumulator"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(whole.replace(old, fragment))
    onnx.save(accumulator(uses_start=True), model / "1" / "model.onnx")

    with serve(model, plugins=[naiad_onnx, naiad_scheduler_sequence]) as client:
        first, second = ask(client, 5, first=True), ask(client, 7, first=False)

    assert {name: array.tolist() for name, array in first.items()} == {"OUTPUT": [[5]], "OUTPUT_STATE": [[5]]}
    assert {name: array.tolist() for name, array in second.items()} == {"OUTPUT": [[12]], "OUTPUT_STATE": [[12]]}
