"""Described tensors: names, datatypes and sizes of a package's inputs and outputs. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_kit.backends.interface import ModelTensor, shape_text
from naiad_torch.datatypes import datatype_of
from naiad_torch.sizes import follows

UNLIMITED = 1 << 31
_LEAST_OF_PYTORCH = 2  # written for every variable dim, although the code is right for 0 and 1
Size = int | str


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor: its name, PyTorch's word for its type (`float32`), and its sizes.

    A size is a number, the name of a variable size (equal sizes have one name), an expression of such names (`2*s0`),
    or "" for a size that follows from others in a way that is not known. `least` and `most` are the smallest and the
    largest sizes of its leading dims, as far as these are known.
    """

    name: str
    type: str
    sizes: tuple[Size, ...]
    least: tuple[int, ...] = ()
    most: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows it may have at most where its first size varies, 0 where it does not."""
        if not self.sizes or isinstance(self.sizes[0], int):
            return 0
        return self.most[0] if self.most else UNLIMITED

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, with -1 for what varies."""
        return tuple(size if isinstance(size, int) else -1 for size in self.sizes)

    def as_model_tensor(self, name: str) -> ModelTensor:
        """The tensor under that name."""
        datatype = datatype_of(self.type)
        return ModelTensor(name, self.type, None if datatype is DataType.TYPE_INVALID else datatype, self.shape)


def most_rows(tensors: Sequence[Described]) -> int:
    """How many rows all of them can have."""
    return min((each.rows for each in tensors if each.rows), default=UNLIMITED)


def check_shapes(
    names: Sequence[str],
    expected: Sequence[Described],
    shapes: Sequence[tuple[int, ...] | None],
    model: str,
    file: str,
) -> None:
    """Check the shapes of a call, None for an omitted input, against those that the model was compiled for.

    Compiled code reads memory by the compiled sizes and limits, without a check of its own. Raises
    InvalidArgumentError.
    """
    bound: dict[str, int] = {}
    derived: list[tuple[int, str, int]] = []
    for index, (tensor, shape) in enumerate(zip(expected, shapes, strict=True)):
        if shape is None:
            continue
        fits = len(shape) == len(tensor.sizes)
        for size, size_or_name in zip(shape, tensor.sizes, strict=fits):
            if size_or_name.__class__ is int:
                fits = fits and size == size_or_name
            elif size_or_name and not str(size_or_name).isidentifier():
                derived.append((index, str(size_or_name), size))
            elif size_or_name:
                fits = fits and bound.setdefault(str(size_or_name), size) == size
        if not fits:
            raise _wrong_shape(names[index], shape, tensor.sizes, bound, model, file)
        _check_limits(names[index], shape, tensor, model, file)
    for index, expression, size in derived:
        if not follows(expression, size, bound):
            raise _wrong_shape(names[index], shapes[index] or (), expected[index].sizes, bound, model, file)


def _check_limits(name: str, shape: tuple[int, ...], tensor: Described, model: str, file: str) -> None:
    start = f"input '{name}' of model '{model}' has shape {shape_text(shape)}, and"
    for axis, (size, most) in enumerate(zip(shape, tensor.most, strict=False)):
        if size > most:
            raise InvalidArgumentError(f"{start} {file} takes at most {most} in dim {axis} of it")
    for axis, (size, least) in enumerate(zip(shape, tensor.least, strict=False)):
        if size < least and least > _LEAST_OF_PYTORCH:
            raise InvalidArgumentError(f"{start} {file} takes at least {least} in dim {axis} of it")


def _wrong_shape(
    name: str, shape: tuple[int, ...], sizes: tuple[Size, ...], bound: dict[str, int], model: str, file: str
) -> InvalidArgumentError:
    known = [bound.get(str(size_or_name), size_or_name) or -1 for size_or_name in sizes]
    return InvalidArgumentError(
        f"input '{name}' of model '{model}' has shape {shape_text(shape)}, and {file} takes "
        f"[{','.join(map(str, known))}]" + _values(bound, known)
    )


def _values(bound: dict[str, int], known: Sequence[Size]) -> str:
    """What the names in the sizes are known to be, for the end of a sentence."""
    if all(isinstance(size, int) or size.isidentifier() for size in known):
        return ""
    return "".join(f", {name} being {value}" for name, value in bound.items() if name.isidentifier())
