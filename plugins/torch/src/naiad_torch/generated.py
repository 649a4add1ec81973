"""Parser of the C++ in an AOTInductor package: datatypes and sizes of the compiled inputs, call specification. Pure.

Nothing else in a package says what its tensors are. Of each argument there is a function `check_input_<n>`, with its
type and limits, and a call `assert_size_stride(name, {sizes}, {strides})`, where equal sizes have one name
(`torch/_inductor/codegen/cpp_wrapper_cpu.py`); of each weight `constants_info_[n].data_size`.
"""

import re
from collections.abc import Sequence

from naiad_torch.described import UNLIMITED, Described, Size
from naiad_torch.sizes import is_expression

_CHECK = re.compile(r"static void check_input_(\d+)\((.*?)\n\}\n", re.DOTALL)
_NAME = re.compile(r"ConstantHandle (\w+) = ConstantHandle\(")
_TYPE = re.compile(r"_expected_dtype = aoti_torch_dtype_(\w+)\(\)")
_MOST = re.compile(r"_size\[(\d+)\] > (\d+)\)")
_LEAST = re.compile(r"_size\[(\d+)\] < (\d+)\)")
_LIST = r"\{([^}]*)\}"
_SPEC = re.compile(r'\b(in|out)_spec_ = R"\((.*?)\)";', re.DOTALL)
_WEIGHT = re.compile(r"constants_info_\[\d+\]\.data_size = (\d+);")


def read_arguments(source: str, count: int) -> tuple[Described, ...]:
    """The `count` tensors that the model takes, called `INPUT__<n>`; () where the source does not say."""
    arguments = [_argument(source, int(number), body) for number, body in _CHECK.findall(source)]
    by_name = {each.name: each for each in arguments if each is not None}
    names = [f"INPUT__{index}" for index in range(count)]
    return tuple(by_name[name] for name in names) if all(name in by_name for name in names) else ()


def reordered_argument(source: str) -> str:
    """The first tensor (`INPUT__<n>`) that the code reads in another order than C's, "" where all are in C order."""
    for number, body in _CHECK.findall(source):
        form = _form(source, body)
        if form is not None and not _is_in_c_order(_sizes(form[1]), _sizes(form[2])):
            return f"INPUT__{number}"
    return ""


def read_call_texts(source: str) -> tuple[str, str] | None:
    """The texts of the trees of arguments and results; None where the source has none."""
    texts = dict(_SPEC.findall(source))
    return (texts["in"], texts["out"]) if len(texts) == 2 else None


def weight_bytes(source: str) -> int:
    """How many bytes the weights take."""
    return sum(map(int, _WEIGHT.findall(source)))


def _argument(source: str, index: int, body: str) -> Described | None:
    kind, form = _TYPE.search(body), _form(source, body)
    if kind is None or form is None:
        return None
    read = _sizes(form[1])
    least, most = (_limits(pattern, body, read, default) for pattern, default in ((_LEAST, 1), (_MOST, UNLIMITED)))
    return Described(f"INPUT__{index}", kind[1], read, least, most)


def _form(source: str, body: str) -> re.Match[str] | None:
    """The texts of the sizes and strides of the argument that this body checks; None where the source has none."""
    name = _NAME.search(body)
    return None if name is None else re.search(rf"assert_size_stride\({name[1]}, {_LIST}, {_LIST}", source)


def _limits(pattern: re.Pattern[str], body: str, sizes: tuple[Size, ...], default: int) -> tuple[int, ...]:
    """The limit of each size, which is the size itself where it does not vary."""
    limits = {int(axis): int(limit) for axis, limit in pattern.findall(body)}
    return tuple(size if isinstance(size, int) else limits.get(axis, default) for axis, size in enumerate(sizes))


def _is_in_c_order(sizes: Sequence[Size], strides: Sequence[Size]) -> bool:
    """Whether the strides are those of C order, for the last dims up to the first that varies."""
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        if not isinstance(size, int):
            break
        expected *= size
    return True


def _sizes(texts: str) -> tuple[Size, ...]:
    return tuple(_size(text.strip()) for text in texts.split(",") if text.strip())


def _size(text: str) -> Size:
    text = re.sub(r"\b(\d+)L+\b", r"\1", text)
    if text.isdigit():
        return int(text)
    return text if is_expression(text) else ""
