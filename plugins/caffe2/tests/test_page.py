"""The page about this plugin lists the operators that there are."""

import re
from pathlib import Path

import naiad_caffe2.net
from naiad_caffe2.translation.operator import OPERATORS
from naiad_caffe2.translation.operators.fills import RANDOM

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "caffe2.md").read_text()


def test_the_page_lists_every_operator_and_no_other():
    (section,) = re.findall(r"\n## Operators\n(.*?)\n## ", PAGE, re.DOTALL)
    cells = [row.split(" | ")[0] for row in re.findall(r"^\| (`.*)$", section, re.MULTILINE)]
    message = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert naiad_caffe2.net.translate
    assert len(message) == len(set(message))
    assert set(message) == set(OPERATORS)


def test_every_operator_is_named_in_a_test():
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py") if path.name != Path(__file__).name)

    assert [name for name in OPERATORS if name not in RANDOM and f'"{name}"' not in tests] == []
