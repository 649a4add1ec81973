"""The page about this plugin lists the operators that there are."""

import re
from pathlib import Path

import naiad_caffe2.translation.net
from naiad_caffe2.translation.operator import OPERATORS

PAGE = (Path(__file__).parents[3] / "docs" / "caffe2.md").read_text()


def test_the_page_lists_every_operator_and_no_other():
    (section,) = re.findall(r"\n## Operators\n(.*?)\n## ", PAGE, re.DOTALL)
    cells = [row.split(" | ")[0] for row in re.findall(r"^\| (`.*)$", section, re.MULTILINE)]
    told = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert naiad_caffe2.translation.net.translate
    assert len(told) == len(set(told))
    assert set(told) == set(OPERATORS)
