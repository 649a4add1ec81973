"""The user's object or function behind an instance, with the optional methods of a class."""

import inspect
from collections.abc import Callable
from typing import Any

from naiad.backend import Placement
from naiad_custom.context import PythonContext

Listener = Callable[[int | str, str], Any]
"""Takes the correlation id of a sequence that has ended, and why: `end`, `idle`, `cancelled` or `unload`."""

Ready = Callable[[], object]
"""Says why an instance is not ready, with something false when it is."""


class UserObject:
    """The user's side of an instance: what to call, and the optional load, ready and close of a class."""

    def __init__(self, target: Any, is_object: bool) -> None:
        self.call: Callable[..., Any] = target.execute if is_object else target
        self._target = target if is_object else None

    def load(self, context: PythonContext, placement: Placement) -> Any:
        """Call `load(context)` or `load(context, placement)`."""
        load = getattr(self._target, "load", None)
        if load is None:
            return None
        return load(*(context, placement)[: len(inspect.signature(load).parameters)])

    @property
    def ready(self) -> Ready:
        """Why it is not ready, "" when it is; the user's `ready` may also answer with True or False.

        Raises AttributeError where the user's object has none, so that no thread is needed to call it.
        """
        ready: Callable[[], object] = getattr(self._target, "ready")  # noqa: B009 - it raises where there is none
        return lambda: _reason_of(ready())

    @property
    def sequence_ended(self) -> Listener:
        """The method to call when a sequence has ended. Raises AttributeError when the model has none."""
        listener: Listener = getattr(self._target, "sequence_ended")  # noqa: B009 - it raises where there is none
        return listener

    def close(self) -> Any:
        """Call `close()`."""
        close = getattr(self._target, "close", None)
        return None if close is None else close()


class UserInstance:
    """The members that all instances over a user's object share."""

    def __init__(self, user_object: UserObject) -> None:
        self._user_object = user_object

    @property
    def ready(self) -> Ready:
        """Says why the user's object is not ready, "" when it is; there only where the object has a `ready`."""
        return self._user_object.ready

    @property
    def sequence_ended(self) -> Listener:
        """Tells the user's object that a sequence is over, and why; there only where it listens."""
        return self._user_object.sequence_ended

    def close(self) -> None:
        """Close the user's object."""
        self._user_object.close()


def _reason_of(answer: object) -> object:
    """Why it is not ready, of what the user's `ready` answered."""
    return ("" if answer else "ready() answered False") if isinstance(answer, bool) else answer
