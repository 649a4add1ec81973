"""A server with naiad-cache in the test's own event loop."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_cache
from naiad import Server
from naiad_testing import in_loop


def running(root: Path, *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with these plugins beside naiad-cache."""
    return in_loop.running(root, naiad_cache, *plugins, **options)
