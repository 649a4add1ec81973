"""Which threads blocking work runs on."""

import re
from pathlib import Path

import pytest

import naiad

SOURCES = sorted(Path(naiad.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("pattern", [r"asyncio\.to_thread\(", r"run_in_executor\(\s*None"])
def test_nothing_runs_on_the_executor_that_all_kinds_of_work_would_share(pattern: str) -> None:
    users = [path.name for path in SOURCES if re.search(pattern, path.read_text())]

    assert users == []
