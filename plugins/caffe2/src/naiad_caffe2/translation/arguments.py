"""The arguments of an operator, read by name and kind; unread ones are reported."""

from collections.abc import Iterable, Sequence
from typing import Any

from naiad_config.mistakes import nearest

INDIFFERENT = frozenset(
    (
        "allow_broadcast_fastpath",
        "cudnn_exhaustive_search",
        "debug_info",
        "deterministic",
        "enable_tensor_core",
        "engine",
        "exhaustive_search",
        "float16_compute",
        "force_algo",
        "fwd_algo",
        "init_params",
        "is_test",
        "net_pos",
        "order",
        "shared_buffer",
        "shared_ws_name",
        "use_cudnn",
        "use_scratch",
        "ws_nbytes_limit",
    )
)
"""Arguments that choose how something is computed and not what, or that exporters write on every operator.

Operators that they do matter to read them.
"""


class TranslationError(Exception):
    """A net that cannot be translated: a sentence that names the operator and its index in the net.

    The caller adds the model and its file.
    """


class Arguments:
    """The arguments of one operator; `where` describes it in messages.

    Every reader raises TranslationError for a value of another kind.
    """

    def __init__(self, arguments: Iterable[Any], where: str) -> None:
        self._arguments = {argument.name: argument for argument in arguments}
        self._where = where
        self._read: set[str] = set(INDIFFERENT)

    def __contains__(self, name: str) -> bool:
        """Whether it is given; it counts as read then."""
        self._read.add(name)
        return name in self._arguments

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number, an index, or a flag as 0 or 1."""
        if name not in self:
            return default
        argument = self._arguments[name]
        if argument.HasField("i"):
            return int(argument.i)
        if argument.HasField("f") and argument.f == int(argument.f):
            return int(argument.f)
        raise self._unlike(name, "a whole number")

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether it is switched on."""
        return bool(self.integer(name, int(default)))

    def number(self, name: str, default: float) -> float:
        """A number; whole ones will do."""
        if name not in self:
            return default
        argument = self._arguments[name]
        if argument.HasField("f"):
            return float(argument.f)
        if argument.HasField("i"):
            return float(argument.i)
        raise self._unlike(name, "a number")

    def text(self, name: str, default: str = "") -> str:
        """A word."""
        if name not in self:
            return default
        argument = self._arguments[name]
        if not argument.HasField("s"):
            raise self._unlike(name, "a text")
        return str(argument.s.decode(errors="replace"))

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """The whole numbers of a list, or of a single value."""
        if name not in self:
            return tuple(default)
        argument = self._arguments[name]
        if argument.ints:
            return tuple(argument.ints)
        if argument.HasField("i"):
            return (int(argument.i),)
        if argument.floats or argument.strings or argument.HasField("f") or argument.HasField("s"):
            raise self._unlike(name, "a list of whole numbers")
        return ()

    def raw(self, name: str) -> Any:
        """The `Argument` message, None where it is not given."""
        return self._arguments[name] if name in self else None

    def refuse_unread(self) -> None:
        """Raise TranslationError when there is an argument that nothing asked for: it might change the result."""
        unread = [name for name in self._arguments if name not in self._read]
        if not unread:
            return
        known = sorted(self._read - INDIFFERENT)
        near = nearest(unread[0], known, 0.8)
        if near:
            step = f"did you mean '{near}'?"
        else:
            step = f"those that are known are {', '.join(known)}" if known else "this operator has no arguments"
        names = ", ".join(f"'{name}'" for name in unread)
        raise TranslationError(f"{self._where} has unknown arguments: {names}; {step}")

    def _unlike(self, name: str, expected: str) -> TranslationError:
        return TranslationError(f"argument '{name}' of {self._where} must be {expected}")
