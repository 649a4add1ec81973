"""A server with naiad-warmup in the test's own event loop."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_warmup
from naiad import Server
from naiad_testing import in_loop


def running(root: Path, *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with these plugins beside naiad-warmup. It does not exit for models that fail."""
    return in_loop.running(root, naiad_warmup, *plugins, **options)
