"""The declaration of a model: arguments of the `model` decorator and the specs of `Array` annotations.

Imports nothing but the standard library.
"""

from dataclasses import dataclass
from typing import Any

MARK = "__naiad_model__"
"""The attribute by which `model` marks a function or class; its value is the `Declaration`."""

ISOLATIONS = ("thread", "process", "model")
"""Where the instances of a model can live."""

_DATATYPES = frozenset(
    ["BOOL", "BYTES", "BF16", "FP16", "FP32", "FP64"]
    + [f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """What an `Array[...]` annotation says: the wire name of the datatype, and the dims without the batch dimension."""

    datatype: str
    dims: tuple[int, ...]

    @classmethod
    def of(cls, item: Any) -> "ArraySpec":
        """The spec between the brackets of `Array[...]`. Raises TypeError with what to write instead."""
        datatype, *dims = item if isinstance(item, tuple) else (item,)
        if not isinstance(datatype, str) or datatype not in _DATATYPES:
            name = getattr(datatype, "__name__", repr(datatype))
            raise TypeError(
                f"Array[...] starts with a datatype of naiad_custom, not with {name}; write Array[FP32, 16] with one "
                f"of {', '.join(sorted(_DATATYPES))}"
            )
        if not dims:
            raise TypeError(f"Array[{datatype}] has no dims; write Array[{datatype}, 16], or -1 for a variable dim")
        for dim in dims:
            if type(dim) is not int or (dim < 1 and dim != -1):
                raise TypeError(
                    f"the dims of Array[{datatype}, ...] are integers >= 1, or -1 for variable; not {dim!r}"
                )
        return cls(datatype, tuple(dims))

    def __str__(self) -> str:
        return f"Array[{', '.join([self.datatype, *map(str, self.dims)])}]"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `model` said about the function or class that it marks."""

    max_batch_size: int = 0
    outputs: tuple[str, ...] = ()
    concurrency: int = 16
    isolation: str = ""
