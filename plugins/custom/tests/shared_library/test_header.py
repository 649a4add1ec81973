"""`naiad_custom.h`: small, plain C and plain C++, found by a command, and as the Python side believes it to be."""

import ctypes
import subprocess
import sys

import pytest

from naiad_custom.include import include_dir
from naiad_custom.shared_library import abi

HEADER = include_dir() / "naiad_custom.h"
NOTHING = '#include "naiad_custom.h"\n'
OFFSETS = """#include "naiad_custom.h"
NAIAD_EXPORT const uint64_t offsets[] = {
  offsetof(naiad_setup, model_name), offsetof(naiad_setup, version), offsetof(naiad_setup, instance_name),
  offsetof(naiad_setup, kind), offsetof(naiad_setup, device), offsetof(naiad_setup, configuration),
  offsetof(naiad_setup, model_directory), offsetof(naiad_setup, version_directory),
  offsetof(naiad_setup, parameter_count), offsetof(naiad_setup, parameter_keys),
  offsetof(naiad_setup, parameter_values), offsetof(naiad_setup, fail), offsetof(naiad_setup, configure),
  offsetof(naiad_batch, requests), offsetof(naiad_batch, request_count), offsetof(naiad_batch, batch_size),
  offsetof(naiad_batch, output), offsetof(naiad_batch, fail), sizeof(naiad_tensor), sizeof(naiad_request)};
NAIAD_EXPORT const int codes[] = {NAIAD_UNKNOWN, NAIAD_INTERNAL, NAIAD_NOT_FOUND, NAIAD_INVALID_ARG,
  NAIAD_UNAVAILABLE, NAIAD_UNSUPPORTED, NAIAD_ALREADY_EXISTS, NAIAD_CANCELLED};
"""


@pytest.mark.parametrize(("program", "standard"), [("cc", "c99"), ("cc", "c11"), ("c++", "c++11"), ("c++", "c++17")])
def test_the_header_compiles_without_a_warning(compiler, program, standard):
    library = ctypes.CDLL(str(compiler.library(NOTHING, program=program, standard=standard)))

    library.naiad_abi.restype = ctypes.c_uint64

    assert library.naiad_abi() == abi.STAMP


def test_the_structs_and_codes_are_those_of_the_python_side(compiler):
    library = ctypes.CDLL(str(compiler.library(OFFSETS)))
    count = len(abi.Setup._fields_) + len(abi.Batch._fields_) + 2

    offsets = list((ctypes.c_uint64 * count).in_dll(library, "offsets"))
    codes = list((ctypes.c_int * 8).in_dll(library, "codes"))

    assert offsets == [
        *(getattr(struct, name).offset for struct in (abi.Setup, abi.Batch) for name, _ in struct._fields_),
        8 * abi.TENSOR_WORDS,
        8 * abi.REQUEST_WORDS,
    ]
    assert codes == list(range(1, 9))
    assert [abi.failure(code, "").code for code in codes] == [
        "UNKNOWN",
        "INTERNAL",
        "NOT_FOUND",
        "INVALID_ARG",
        "UNAVAILABLE",
        "UNSUPPORTED",
        "ALREADY_EXISTS",
        "CANCELLED",
    ]


def test_the_header_is_short_and_names_the_version_that_the_python_side_speaks():
    text = HEADER.read_text()

    assert len(text.splitlines()) < 150
    assert f"#define NAIAD_CUSTOM_ABI {abi.VERSION} " in text


def test_a_command_tells_where_the_header_is():
    message = subprocess.run([sys.executable, "-m", "naiad_custom.include"], capture_output=True, text=True, check=True)

    assert (message.stdout, message.stderr) == (f"{HEADER.parent}\n", "")
