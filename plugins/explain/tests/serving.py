"""A server with naiad-explain in the test's own event loop."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_explain
from naiad import Server
from naiad_testing import in_loop


def running(root: Path, *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with naiad-explain and these plugins."""
    return in_loop.running(root, naiad_explain, *plugins, **{"allow_explain": True} | options)
