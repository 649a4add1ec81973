"""Model files that load at the same time are all parsed."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from naiad_custom.syntax_trees import syntax_tree


@pytest.fixture
def changing_threads():
    """Threads take turns while a tree is made: whenever garbage is collected, which calls a function of Python."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def callback(_phase, _info):
        """Where the interpreter lets another thread run."""

    sys.setswitchinterval(1e-6)
    gc.callbacks.append(callback)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(callback)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("changing_threads")
def test_threads_may_parse_at_the_same_time(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("x = [(1, 2), {'a': [3, (4, 5)]}]\n" * 100, encoding="utf-8")

    with ThreadPoolExecutor(4) as threads:
        trees = list(threads.map(syntax_tree, [path] * 8))

    assert [len(tree.body) for tree in trees] == [100] * 8
