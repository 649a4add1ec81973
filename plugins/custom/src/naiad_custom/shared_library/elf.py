"""ELF check: refuses files that the loader cannot load, by their first bytes. Pure.

The header is that of the System V ABI: sixteen bytes of identification (class in byte 4, byte order in byte 5), then
the type and the machine of the file as 16-bit numbers.
"""

from collections.abc import Mapping
from types import MappingProxyType

HEADER_SIZE = 20
"""The bytes of a header that are read."""

_MACHINES: Mapping[int, str] = MappingProxyType(
    {
        3: "x86 (32 bits)",
        8: "MIPS",
        21: "POWER",
        22: "s390x",
        40: "ARM (32 bits)",
        62: "x86-64",
        183: "ARM (64 bits)",
        243: "RISC-V",
        258: "LoongArch",
    }
)
_TYPES: Mapping[int, str] = MappingProxyType({1: "an object file (.o)", 2: "a program"})
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"!<arch>\n", "a static library (.a)"),
    (b"MZ", "a library for Windows"),
    (b"\xcf\xfa\xed\xfe", "a library for macOS"),
    (b"\xca\xfe\xba\xbe", "a library for macOS"),
    (b"version https://git", "a pointer of Git LFS to the file"),
    (b"#!", "a script"),
)
_LINKED = "link it with -shared"


def objection(header: bytes, own: bytes) -> str:
    """Why a file with this header cannot be loaded into a program with the header `own`, "" when there is no objection.

    Ends with what to do. Nothing is said where this program is no ELF file.
    """
    if own[:4] != b"\x7fELF":
        return ""
    if header[:4] != b"\x7fELF" or len(header) < HEADER_SIZE:
        other = next((message for start, message in _OTHERS if header.startswith(start)), "not a shared library")
        return f"it is {other if header else 'empty'}; {_LINKED}, for Linux"
    if header[4:6] != own[4:6] or _number(header, 18) != _number(own, 18):
        return (
            f"it was built for {_machine(header)}, and this server runs on {_machine(own)}; build it on such a "
            "machine, or with a cross compiler for it"
        )
    kind = _number(header, 16)
    return f"it is {_TYPES[kind]}; {_LINKED}" if kind in _TYPES else ""


def _number(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 2], "big" if header[5] == 2 else "little")


def _machine(header: bytes) -> str:
    number = _number(header, 18)
    return _MACHINES.get(number, f"the machine {number} of ELF")
