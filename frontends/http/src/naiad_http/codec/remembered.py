"""The skeletons of requests that came before, by their texts, but for what differs from request to request."""

import re
from collections.abc import Callable

from naiad_http.codec.skeletons import Skeleton

LONGEST = 4096
"""Longer texts are not remembered."""

_MOST = 512
_LEADING_ID = re.compile(rb'\{\s*"id"\s*:\s*"([ !#-\[\]-~]*)"\s*,')
"""An id of printable ASCII without escapes, which is where clients put it: in front."""

_SEQUENCE = b'"sequence_id"'
_SEQUENCE_ID = re.compile(rb'"sequence_id"\s*:\s*(?:(0|[1-9][0-9]{0,18})|"([ !#-\[\]-~]*)")(?=\s*[,}])')
"""A correlation id: a number that fits into 64 bits however long it is, or printable ASCII without escapes."""

Found = tuple[Skeleton, str, int | str]
"""A skeleton, and the request's own id and correlation id."""


class Remembered:
    """Skeletons of texts without JSON tensors; `read` makes one of a text, or raises InvalidArgumentError.

    A request's id, and the correlation id of its sequence, are left out of the text that is remembered: each sequence
    would have to be read anew otherwise, which takes three times as long as all the rest of decoding.
    """

    def __init__(self, read: Callable[[bytes, str], Skeleton]) -> None:
        self._read = read
        self._whole: dict[bytes, Skeleton] = {}
        self._open: dict[bytes, Skeleton] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._whole) + len(self._open)

    def find(self, front: bytes, model: str) -> Found:
        """What the text says; `model` is only told in errors."""
        found = _LEADING_ID.match(front)
        key = front if found is None else front[found.end() :]
        text = key if found is None else b"{" + key
        skeleton, correlation_id = self._of_key(key, text, model)
        if found is None or skeleton.id:  # of two ids the later counts, as it does in any other key
            return skeleton, skeleton.id, correlation_id
        return skeleton, found[1].decode("ascii"), correlation_id

    def _of_key(self, key: bytes, text: bytes, model: str) -> tuple[Skeleton, int | str]:
        if _SEQUENCE in key and len(key) <= LONGEST:
            hole = _SEQUENCE_ID.search(key)
            if hole is not None:
                return self._of_sequence(key, hole, text, model)
        skeleton = self._whole.get(key)
        if skeleton is None:
            skeleton = self._read(text, model)
            _keep(self._whole, key, skeleton)
        return skeleton, skeleton.parameters.correlation_id

    def _of_sequence(self, key: bytes, hole: re.Match[bytes], text: bytes, model: str) -> tuple[Skeleton, int | str]:
        number = hole[1]
        correlation_id: int | str = int(number) if number is not None else hole[2].decode("ascii")
        opened = key[: hole.start()] + (b"#" if number is not None else b"$") + key[hole.end() :]
        skeleton = self._open.get(opened)
        if skeleton is not None:
            return skeleton, correlation_id
        skeleton = self._read(text, model)
        told = skeleton.parameters.correlation_id
        if correlation_id and (told, type(told)) == (correlation_id, type(correlation_id)) and _says_it_once(key):
            _keep(self._open, opened, skeleton)
        return skeleton, told


def _says_it_once(key: bytes) -> bool:
    """Whether the correlation id can be nowhere else in the text, neither plainly nor in other words."""
    return key.count(_SEQUENCE) == 1 and b"\\" not in key


def _keep(skeletons: dict[bytes, Skeleton], key: bytes, skeleton: Skeleton) -> None:
    if skeleton.tensors or len(key) > LONGEST:
        return
    if len(skeletons) >= _MOST:
        del skeletons[next(iter(skeletons))]
    skeletons[key] = skeleton
