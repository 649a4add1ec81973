"""Parser of JSON texts of megabytes, in pieces that each hold the interpreter's lock for milliseconds.

A JSON parser holds that lock until it is done, on any thread: about 0.1 s for each million of values. The arrays that
make a text large are read in pieces, and the rest must have few values.
"""

import re
import secrets
from typing import Any

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.documents import MAX_DEPTH, parse
from naiad_http.codec.tensors import flatten
from naiad_kit.buffers import Buffer

PIECE_BYTES = 65536
"""Texts up to this size are parsed at once."""

MAX_VALUES = 1_000_000
"""The most values of a text outside of its large arrays; a list counts 2, an object 4 and a member of one 8."""

_WEIGHTS = ((b",", 1), (b"[", 2), (b"{", 4), (b":", 8))
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# An unterminated string extends to the end of the text.
_STRING_OR_ARRAY = re.compile(_STRING + rb"?|:\s*\[", re.DOTALL)
_ONLY_STRINGS = re.compile(_STRING, re.DOTALL)
_NUMBERS = re.compile(rb'[^"{}:]*+')
_STRINGS = re.compile(rb'(?:[^"{}:]*+' + _STRING + rb"[\s\]]*+,)++", re.DOTALL)
_LAST_STRING = re.compile(rb'[^"{}:]*+' + _STRING + rb"[\s\]]*+", re.DOTALL)
_WITH_STRINGS = re.compile(rb'(?:[^"]++|' + _STRING + rb")*+", re.DOTALL)
_STRING_OR_REST = re.compile(_STRING + rb"|.*+", re.DOTALL)
_QUOTE = b'"'


def parse_document(text: Buffer) -> Any:
    """The value of a JSON text, as `parse`; a large array of numbers and strings in a member is flattened.

    Raises InvalidArgumentError, and TooLargeError for a large text with more than MAX_VALUES outside of such arrays.
    """
    return parse(text) if len(text) <= PIECE_BYTES else read_document(text)[0]


def read_document(text: Buffer) -> tuple[Any, bytes]:
    """The value of a JSON text, as `parse_document`, and the text with a number as the element of each large array."""
    content = bytes(text)
    if len(content) <= PIECE_BYTES:
        return parse(content), content
    short, arrays = _without_large_arrays(content)
    _check_values(short)
    document = parse(short)
    if arrays and not _put_back(document, arrays):  # one of two members with the same name
        _check_values(content)
        return parse(content), content
    return document, short


def _without_large_arrays(text: bytes) -> tuple[bytes, dict[int, list[Any]]]:
    """The text with a random number as the one element of each large array, and the elements by that number."""
    parts: list[bytes] = []
    arrays: dict[int, list[Any]] = {}
    copied = offset = 0
    for _ in range(MAX_VALUES):
        match = _STRING_OR_ARRAY.search(text, offset)
        if match is None:
            break
        offset = match.end()
        if match[0].startswith(_QUOTE):
            continue
        begin = offset - 1
        end, elements = _read_array(text, begin)
        offset = max(end, offset)
        if elements is not None:
            key = secrets.randbits(62)
            arrays[key] = elements
            parts += (text[copied:begin], b"[%d]" % key)
            copied = end
    return b"".join((*parts, text[copied:])), arrays


def _read_array(text: bytes, begin: int) -> tuple[int, list[Any] | None]:
    """The offset behind the array at `begin`, and its elements, flat; None where it is short, broken, or has objects.

    The text is cut at commas. A piece gets the brackets that are open at its begin and at its end, so that it is JSON.
    """
    elements: list[Any] = []
    offset, depth = begin, 0
    while True:
        stop, is_last = _piece(text, offset, depth)
        if is_last and offset == begin:
            return stop, None
        piece = text[offset:stop].strip()
        after = depth + _rise(piece)
        # the added brackets would hide a missing element between two commas
        is_wrong = not piece or (offset > begin and piece.startswith(b"]")) or piece.endswith(b"[")
        if stop < 0 or is_wrong or not 0 <= after <= MAX_DEPTH:
            return offset, None
        try:
            values = parse(b"[" * depth + piece + b"]" * after)
            if depth != 1 or b"[" in piece:
                values, _ = flatten(values)
        except InvalidArgumentError:
            return offset, None
        elements += values
        if is_last:
            return stop, elements
        offset, depth = stop + 1, after


def _piece(text: bytes, offset: int, depth: int) -> tuple[int, bool]:
    """The end of the piece that begins at `offset`, -1 if it cannot be cut, and whether its array ends there."""
    window = min(offset + PIECE_BYTES, len(text))
    stop = _end(_NUMBERS, text, offset, window)
    is_cut = stop == window
    if text[stop : stop + 1] == _QUOTE:
        stop = _end(_STRINGS, text, offset, window) - 1
        if stop < 0:
            stop = _end(_LAST_STRING, text, offset, len(text))
        is_cut = text[stop : stop + 1] == b","
        cut = stop
    else:
        cut = text.rfind(b",", offset, stop) if is_cut else -1
    if stop >= 0 and depth + _rise(text[offset:stop]) <= 0:
        return text.rfind(b"]", offset, stop) + 1, True
    return (cut if is_cut else -1), False


def _end(pattern: re.Pattern[bytes], text: bytes, offset: int, limit: int) -> int:
    """The offset of the end of a match at `offset`, -1 without a match."""
    match = pattern.match(text, offset, limit)
    return -1 if match is None else match.end()


def _rise(piece: bytes) -> int:
    """The number of lists that begin in a piece minus the number that end."""
    if b"[" not in piece and b"]" not in piece:
        return 0
    if _QUOTE in piece:
        piece = _ONLY_STRINGS.sub(b"", piece)
    return piece.count(b"[") - piece.count(b"]")


def _check_values(text: bytes) -> None:
    """Raise TooLargeError for more than MAX_VALUES."""
    if _weigh(text) <= MAX_VALUES:
        return
    values = offset = 0
    while offset < len(text) and values <= MAX_VALUES:  # marks within strings do not count
        stop = _end(_WITH_STRINGS, text, offset, offset + PIECE_BYTES)
        if stop <= offset:  # a string that is longer than a piece
            stop = _end(_STRING_OR_REST, text, offset, len(text))
        values += _weigh(_ONLY_STRINGS.sub(b"", text[offset:stop]))
        offset = stop
    if values > MAX_VALUES:
        raise TooLargeError(
            f"the request's JSON has more than {MAX_VALUES} members, lists and values outside of large arrays of "
            "numbers and strings; send tensors as flat arrays of one type, or as binary data"
        )


def _weigh(text: bytes) -> int:
    return sum(weight * text.count(mark) for mark, weight in _WEIGHTS)


def _put_back(document: Any, arrays: dict[int, list[Any]]) -> bool:
    """Put the large arrays in place of their numbers. Returns False if the document lacks one of the numbers."""
    holders = [document]
    while holders and arrays:
        holder = holders.pop()
        for key, value in _items(holder):
            if type(value) is list and len(value) == 1 and type(value[0]) is int and value[0] in arrays:
                holder[key] = arrays.pop(value[0])
            elif type(value) in (dict, list):
                holders.append(value)
    return not arrays


def _items(holder: Any) -> Any:
    if type(holder) is dict:
        return list(holder.items())
    return enumerate(holder) if type(holder) is list else ()
