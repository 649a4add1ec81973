"""Readiness by the model's `is_ready`, called on a thread with a short wait."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from naiad_config.user_code import describe_failure


def reason_of(is_ready: Callable[[], Any]) -> str:
    """Why the model is not ready, "" when it is. Calls `is_ready`, plain or `async def`, which may block."""
    try:
        answer = is_ready()
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
    except Exception as error:  # noqa: BLE001 - the model's own code; whatever it raises is the reason
        return f"is_ready() raised {describe_failure(error)}"
    if not isinstance(answer, bool):
        return f"is_ready() answered with {type(answer).__name__}; it must answer True or False"
    return "" if answer else "is_ready() answered False"


async def _awaited(answer: Any) -> Any:
    return await answer
