"""What is not a shared library for this machine is refused by its first bytes, with what it is."""

import pytest

from naiad_custom.shared_library.elf import objection


def header(machine=62, kind=3, bits=2, order=1):
    endian = "big" if order == 2 else "little"
    return b"\x7fELF" + bytes((bits, order, 1)) + bytes(9) + kind.to_bytes(2, endian) + machine.to_bytes(2, endian)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "it is empty; link it with -shared, for Linux"),
        (b"#!/bin/sh\nexit 0\n", "it is a script; link it with -shared, for Linux"),
        (b"!<arch>\nlibx.o/       ", "it is a static library (.a); link it with -shared, for Linux"),
        (b"MZ\x90\x00" + bytes(16), "it is a library for Windows; link it with -shared, for Linux"),
        (b"\xcf\xfa\xed\xfe" + bytes(16), "it is a library for macOS; link it with -shared, for Linux"),
        (b"version https://git-lfs.x", "it is a pointer of Git LFS to the file; link it with -shared, for Linux"),
        (b"hello", "it is not a shared library; link it with -shared, for Linux"),
        (header()[:8], "it is not a shared library; link it with -shared, for Linux"),
        (header(kind=1), "it is an object file (.o); link it with -shared"),
        (header(kind=2), "it is a program; link it with -shared"),
    ],
)
def test_another_kind_of_file_is_reported(value, message):
    assert objection(value, header()) == message


@pytest.mark.parametrize(
    ("value", "machine"),
    [
        (header(183), "ARM (64 bits)"),
        (header(3, bits=1), "x86 (32 bits)"),
        (header(62, bits=1), "x86-64"),
        (header(22, order=2), "s390x"),
        (header(4711), "the machine 4711 of ELF"),
    ],
)
def test_another_machine_is_reported(value, machine):
    assert objection(value, header()).startswith(f"it was built for {machine}, and this server runs on x86-64; build")


@pytest.mark.parametrize(
    ("value", "own"), [(header(), header()), (header(183), header(183)), (b"anything", b"\xcf\xfa\xed\xfe")]
)
def test_nothing_is_said_of_a_library_of_this_machine_or_where_machines_know_no_elf(value, own):
    assert objection(value, own) == ""
