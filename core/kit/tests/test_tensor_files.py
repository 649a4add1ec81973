"""Tensors in files: each datatype, and files that do not hold what the configuration says."""

from pathlib import Path

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.tensor_files import read_tensor_file
from naiad_tensors.datatypes import tensor_type


def read(path: Path, wire: str, shape: tuple[int, ...], raw: bytes) -> np.ndarray:
    path /= "raw"
    path.write_bytes(raw)
    return read_tensor_file(path, "warmup", tensor_type(wire), shape)


@pytest.mark.parametrize(
    ("wire", "raw", "expected"),
    [
        ("INT16", b"\x01\0\x02\0", [1, 2]),
        ("INT16", b"\x01\0\x02\0\x03", [1, 2]),
        ("BF16", b"\x80\x3f\0\x40", [0x3F80, 0x4000]),
        ("BOOL", b"\0\x02", [False, True]),
        ("BYTES", b"\x03\0\0\0a\0b\0\0\0\0", [b"a\0b", b""]),
    ],
    ids=["whole", "more", "BF16", "a true byte that is not 1", "strings"],
)
def test_a_file_is_read_as_its_datatype(tmp_path: Path, wire: str, raw: bytes, expected: list[object]) -> None:
    array = read(tmp_path, wire, (2,), raw)

    assert array.tolist() == expected
    assert (array.dtype, array.flags.writeable) == (tensor_type(wire).dtype, True)
    if wire == "BOOL":
        assert array.tobytes() == b"\0\x01"


@pytest.mark.parametrize("wire", ["FP32", "BOOL", "BYTES"])
def test_a_tensor_without_elements_needs_no_bytes(tmp_path: Path, wire: str) -> None:
    assert read(tmp_path, wire, (2, 0), b"").shape == (2, 0)


@pytest.mark.parametrize(
    ("wire", "raw", "message"),
    [
        ("FP32", b"\0" * 7, "warmup setting expects 8 bytes, .* only has 7 bytes"),
        ("BYTES", b"\x01\0\0\0a", "holds 1 strings; the dims need 2"),
        ("BYTES", b"\0\0\0\0" * 3, "holds 3 strings; the dims need 2"),
        ("BYTES", b"\x05\0\0\0a", "ends within the string at byte 0"),
        ("BYTES", b"\x01\0\0\0a\x01", "ends within the string at byte 5"),
    ],
)
def test_a_file_with_another_content_is_refused(tmp_path: Path, wire: str, raw: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read(tmp_path, wire, (2,), raw)


@pytest.mark.parametrize(("name", "reason"), [("none", "No such file"), ("a\0b", "null byte")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"warmup file '.*' cannot be read: .*{reason}"):
        read_tensor_file(tmp_path / name, "warmup", tensor_type("FP32"), (1,))
