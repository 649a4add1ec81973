"""Header blocks (RFC 7541): decoded by `hpack` behind a cache, and encoded as literals without a dynamic table.

The server announces SETTINGS_HEADER_TABLE_SIZE 0. From the moment that a client has confirmed it, by setting the size
of its dynamic table to 0, the bytes of a block alone determine its fields. Clients send the same block for every call
of a method, so the interpretation of a block is cached by its bytes, for all connections.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import hpack

from naiad_grpc.http2.fields import Fields, RequestFields, check_trailers, request_fields
from naiad_grpc.http2.frames import ErrorCode, Http2Error

MOST_LIST_BYTES = 16384
"""SETTINGS_MAX_HEADER_LIST_SIZE: the interpreter refuses a request whose list is larger."""
MOST_DECODED_BYTES = 65536
"""Header lists above this size end the connection: they are not even decoded completely."""
MOST_BLOCK_BYTES = 32768
MOST_CONTINUATIONS = 16

_MOST_CACHED = 1024
_LONGEST_CACHED = 2048
_SIZE_UPDATE, _SIZE_UPDATE_MASK = 0x20, 0xE0

T = TypeVar("T")


class HeadCache(Generic[T]):
    """Interpretations of header blocks, for all connections of a listener.

    `interpret` makes of the fields of a request what the events carry; it must be a function of the fields alone.
    """

    def __init__(self, interpret: Callable[[RequestFields], T]) -> None:
        self.heads: dict[bytes, T] = {}
        self._interpret = interpret
        self._stateless = _decoder()
        self._stateless.header_table_size = 0
        self._stateless.max_allowed_table_size = 0

    def read(self, block: bytes) -> T:
        """The head of a request whose block is not cached and uses no dynamic table.

        Raises MalformedFieldsError or Http2Error.
        """
        head = self.interpret(_decode(self._stateless, block))
        if len(block) <= _LONGEST_CACHED:
            if len(self.heads) >= _MOST_CACHED:
                del self.heads[next(iter(self.heads))]
            self.heads[block] = head
        return head

    def read_trailers(self, block: bytes) -> None:
        """Check a trailer section that uses no dynamic table. Raises MalformedFieldsError or Http2Error."""
        check_trailers(_decode(self._stateless, block))

    def interpret(self, fields: Fields) -> T:
        """The head of a request with these fields. Raises MalformedFieldsError."""
        return self._interpret(request_fields(fields))


class BlockReader(Generic[T]):
    """Reads the header blocks of one connection.

    `known` has the heads of blocks that need no decoding: none while the client may have a dynamic table.
    """

    __slots__ = ("_acknowledged", "_cache", "_decoder", "known")

    def __init__(self, cache: HeadCache[T]) -> None:
        self._cache = cache
        self.known: dict[bytes, T] = {}
        self._acknowledged = False
        self._decoder: hpack.Decoder | None = _decoder()

    def settings_acknowledged(self) -> None:
        """The client knows that its dynamic table must have the size 0."""
        self._acknowledged = True

    def read(self, block: bytes) -> T:
        """The head of a request. Raises MalformedFieldsError or Http2Error."""
        if self._decoder is None:
            head = self.known.get(block)
            return self._cache.read(block) if head is None else head
        return self._cache.interpret(self._decode(self._decoder, block))

    def read_trailers(self, block: bytes) -> None:
        """Check a trailer section. Raises MalformedFieldsError or Http2Error."""
        if self._decoder is None:
            self._cache.read_trailers(block)
        else:
            check_trailers(self._decode(self._decoder, block))

    def skip(self, block: bytes) -> None:
        """Read a block whose fields do not matter: it may change the dynamic table. Raises Http2Error."""
        if self._decoder is not None:
            self._decode(self._decoder, block)

    def _decode(self, decoder: hpack.Decoder, block: bytes) -> Fields:
        """The fields of a block; a client that gives up its dynamic table needs no decoder of its own any more."""
        fields = _decode(decoder, block)
        if self._acknowledged and block and block[0] & _SIZE_UPDATE_MASK == _SIZE_UPDATE:
            if decoder.header_table_size:
                raise Http2Error(ErrorCode.COMPRESSION_ERROR, "the dynamic table is larger than announced")
            self._decoder = None
            self.known = self._cache.heads
        return fields


def _decoder() -> hpack.Decoder:
    return hpack.Decoder(max_header_list_size=MOST_DECODED_BYTES)


def _decode(decoder: hpack.Decoder, block: bytes) -> Fields:
    """Raises Http2Error."""
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
    except hpack.OversizedHeaderListError:
        reason = f"a header list is larger than {MOST_DECODED_BYTES} bytes"
        raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, reason) from None
    except (hpack.HPACKError, IndexError) as error:
        reason = str(error).partition(":")[0]  # the rest is the repr of a memoryview
        raise Http2Error(ErrorCode.COMPRESSION_ERROR, f"a header block is broken: {reason}") from None


def encode_fields(fields: Fields) -> bytes:
    """A header block of literals without indexing (RFC 7541, section 6.2.2)."""
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields)


def _text(text: bytes) -> bytes:
    """A string literal: its length with a prefix of seven bits, and its bytes."""
    size = len(text)
    if size < 0x7F:
        return bytes((size,)) + text
    size -= 0x7F
    length = bytearray((0x7F,))
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes(length) + text
