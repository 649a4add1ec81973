"""docs/ragged.md: its model and its configuration are one that requests of different lengths share."""

import re
from pathlib import Path

import numpy as np

import naiad_custom
import naiad_scheduler_dynamic
from naiad_testing import serve

PAGE = (Path(__file__).parents[1] / "docs" / "ragged.md").read_text(encoding="utf-8")
BATCHING = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 30000000 }"


def test_the_example_of_the_page_is_a_model(tmp_path):
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (config,) = re.findall(r"```pbtxt\n(name: .*?)```", PAGE, re.DOTALL)
    for replaced in ("dynamic_batching { }", "max_batch_size: 32"):
        config = config.replace(replaced, "")
    (tmp_path / "lookup" / "1").mkdir(parents=True)
    (tmp_path / "lookup" / "1" / "model.py").write_text(source)
    (tmp_path / "lookup" / "config.pbtxt").write_text(f"{BATCHING} {config.replace('onnxruntime', 'python')}")

    with serve(tmp_path / "lookup", plugins=[naiad_custom, naiad_scheduler_dynamic]) as client:
        answers = client.infer_all(*({"IDS": np.array([ids], np.int32)} for ids in ([1, 2], [3], [4, 5, 6])))
        (statistics,) = client.call(lambda server: server.statistics("lookup"))

    assert [answer["VALUES"].tolist() for answer in answers] == [[[2, 4]], [[3]], [[12, 15, 18]]]
    assert statistics.execution_count == 1
