"""Cache of request templates, keyed by the JSON text without the ids that differ from request to request."""

import re
from collections.abc import Callable
from typing import TypeVar

from naiad_http.codec.templates import LONGEST, RequestTemplate

_T = TypeVar("_T")

_MOST = 512
_LEADING_ID = re.compile(rb'\{\s*"id"\s*:\s*"([ !#-\[\]-~]*)"\s*,')
"""An id of printable ASCII without escapes, which is where clients put it: in front."""

_SEQUENCE = b'"sequence_id"'
_SEQUENCE_ID = re.compile(rb'"sequence_id"\s*:\s*(?:(0|[1-9][0-9]{0,18})|"([ !#-\[\]-~]*)")(?=\s*[,}])')
"""A correlation id: a number that fits into 64 bits however long it is, or printable ASCII without escapes."""

IdentifiedTemplate = tuple[RequestTemplate, str, int | str]
"""A template, and the request's own id and correlation id."""


class TemplateCache:
    """Templates of texts without JSON tensors; `read` parses a text, or raises InvalidArgumentError.

    The key leaves out a request's id and the correlation id of its sequence: otherwise each new sequence would be a
    miss, and reading its text takes three times as long as the rest of decoding.
    """

    def __init__(self, read: Callable[[bytes, str], RequestTemplate]) -> None:
        self._read = read
        self._whole: dict[bytes, RequestTemplate] = {}
        self._open: dict[bytes, RequestTemplate] = {}
        self._without_id: dict[bytes, IdentifiedTemplate] = {}  # whole texts: nothing in them differs

    def __len__(self) -> int:
        """The number of cached templates."""
        return len(self._whole) + len(self._open)

    def find(self, front: bytes, model: str) -> IdentifiedTemplate:
        """The template of the text and its ids; errors name `model`."""
        identified = self._without_id.get(front)
        if identified is not None:
            return identified
        leading_id = _LEADING_ID.match(front)
        text = front if leading_id is None else b"{" + front[leading_id.end() :]
        template, correlation_id = self._of_text(text, model)
        # of two ids the later counts, as for any other duplicate key
        request_id = template.id if leading_id is None or template.id else leading_id[1].decode("ascii")
        identified = template, request_id, correlation_id
        if not request_id and self._whole.get(text) is template:
            _keep(self._without_id, front, identified)
        return identified

    def _of_text(self, text: bytes, model: str) -> tuple[RequestTemplate, int | str]:
        if _SEQUENCE in text and len(text) <= LONGEST:
            hole = _SEQUENCE_ID.search(text)
            if hole is not None:
                return self._of_sequence(text, hole, model)
        template = self._whole.get(text)
        if template is None:
            template = self._read(text, model)
            if not template.tensors:
                _keep(self._whole, text, template)
        return template, template.parameters.correlation_id

    def _of_sequence(self, text: bytes, hole: re.Match[bytes], model: str) -> tuple[RequestTemplate, int | str]:
        number = hole[1]
        correlation_id: int | str = int(number) if number is not None else hole[2].decode("ascii")
        opened = text[: hole.start()] + (b"#" if number is not None else b"$") + text[hole.end() :]
        template = self._open.get(opened)
        if template is not None:
            return template, correlation_id
        template = self._read(text, model)
        parsed = template.parameters.correlation_id
        is_same = (parsed, type(parsed)) == (correlation_id, type(correlation_id))
        if correlation_id and is_same and _occurs_once(text) and not template.tensors:
            _keep(self._open, opened, template)
        return template, parsed


def _occurs_once(text: bytes) -> bool:
    """Whether the text has the key of the correlation id once, and no escape that could spell it again."""
    return text.count(_SEQUENCE) == 1 and b"\\" not in text


def _keep(templates: dict[bytes, _T], key: bytes, template: _T) -> None:
    if len(key) > LONGEST:
        return
    if len(templates) >= _MOST:
        del templates[next(iter(templates))]
    templates[key] = template
