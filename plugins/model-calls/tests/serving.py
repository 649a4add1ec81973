"""A server with naiad-model-calls in the test's own event loop."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_model_calls
from naiad import Server
from naiad_testing import in_loop


def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with these plugins beside naiad-model-calls."""
    return in_loop.running(root, naiad_model_calls, *plugins, **options)
