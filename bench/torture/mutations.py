"""Seeded mutations of bytes and of JSON values, for the fuzzers."""

import copy
from random import Random
from typing import Any

ODD_NUMBERS = (0, -1, 1, 2, 3, 16, 255, 1 << 31, (1 << 31) - 1, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 64, 10**30)
ODD_TEXTS = ("", "x", "x" * 3000, "\x00", "é", "../..", "%2e", "INPUT0", "FP32", "BYTES", "-1", "1" * 400)
ODD_VALUES: tuple[Any, ...] = (
    *ODD_NUMBERS,
    *ODD_TEXTS,
    *(None, True, False, 1.5, -0.0, 1e308, float("inf"), float("nan")),
    *([], {}, [[]], [[1], 2], [None], {"a": 1}, [[[[[[1]]]]]], [1, "1", None]),
)


def mutate_bytes(random: Random, content: bytes) -> bytes:
    """The content after one to four changes: bytes flipped, left out, inserted, repeated or moved."""
    mutated = bytearray(content)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(mutated) + 1)
        size = random.choice((1, 1, 2, 4, 8, 64, 300))
        match random.randrange(6):
            case 0:
                mutated[at : at + 1] = bytes((random.randrange(256),))
            case 1:
                del mutated[at : at + size]
            case 2:
                mutated[at:at] = random.randbytes(size)
            case 3:
                mutated[at:at] = mutated[at : at + size]
            case 4:
                mutated[at : at + size] = bytes(size)
            case _:
                start = random.randrange(len(mutated) + 1)
                mutated[at:at] = mutated[start : start + size]
    return bytes(mutated)


def mutate_json(random: Random, value: Any) -> Any:
    """A copy of the value with one to three of its members replaced, left out, added or wrapped."""
    mutated = [copy.deepcopy(value)]
    for _ in range(random.randint(1, 3)):
        holder, key = random.choice(list(_members(mutated)))
        match random.randrange(5):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice(ODD_TEXTS)] = copy.deepcopy(random.choice(ODD_VALUES))
            case 2:
                holder[key] = [holder[key]]
            case 3:
                holder[key] = {"data": holder[key]}
            case _:
                holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return mutated[0]


def _members(value: Any) -> list[tuple[Any, Any]]:
    """Every pair of a list or object within the value and a key in it; long lists count with their first members."""
    pairs: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 8)) if isinstance(value, list) else ()
    for key in keys:
        pairs.append((value, key))
        pairs.extend(_members(value[key]))
    return pairs
