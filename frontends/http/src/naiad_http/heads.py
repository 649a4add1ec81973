"""The head of an HTTP request, from the request line to the empty line, parsed and remembered."""

from dataclasses import dataclass
from functools import lru_cache

import httptools

from naiad.errors import InvalidArgumentError, NaiadError, drop_tracebacks
from naiad_http.codec.envelope import Envelope
from naiad_http.compression import wanted_coding
from naiad_http.envelopes import EnvelopeReader, HeaderList
from naiad_http.route_table import RouteTable
from naiad_http.statuses import HttpError

_REMEMBERED = 512
_LONGEST_REMEMBERED = 2048


@dataclass(frozen=True, slots=True)
class Head:
    """A parsed head. Header names are in lower case; `length` is the Content-Length, or 0.

    `envelope` is that of a request to a model, and `refusal` why it cannot be served, whatever its body. `direct` says
    that it can be answered without more ado: neither its body nor its answer is compressed. `split` is how many bytes
    of such a body are JSON with tensors behind them, None for a body that stays whole.
    """

    method: str
    target: bytes
    path: bytes
    query: bytes
    http_version: str
    headers: tuple[tuple[bytes, bytes], ...]
    length: int
    chunked: bool
    keep_alive: bool
    expects_continue: bool
    envelope: Envelope | None
    refusal: NaiadError | HttpError | None
    direct: bool
    split: int | None


class HeadReader:
    """Parses heads. Clients send the same head over and over, so the latest short ones are remembered.

    A hit takes 0.1 µs, where parsing takes 15 µs.
    """

    def __init__(self, envelopes: EnvelopeReader, routes: RouteTable | None = None) -> None:
        """With `routes`, requests that are not inference and have a body may be refused by their heads too."""
        self._envelopes = envelopes
        self._routes = routes
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._parse)

    def read(self, block: bytes) -> Head:
        """The head in these bytes, which end with the empty line. Raises HttpError for what is no HTTP/1 request."""
        return self._remembered(block) if len(block) <= _LONGEST_REMEMBERED else self._parse(block)

    def _parse(self, block: bytes) -> Head:
        parts = _Parts()
        parser = httptools.HttpRequestParser(parts)
        try:
            parser.feed_data(block)
            url = httptools.parse_url(parts.url)
        except httptools.HttpParserUpgrade:
            url = _url_of_upgrade(parts.url)
        except (httptools.HttpParserError, httptools.HttpParserInvalidURLError) as error:
            raise HttpError(400, f"this is no HTTP request: {error}") from error
        version = parser.get_http_version()
        if not parts.complete or version not in ("1.0", "1.1"):
            raise HttpError(505, f"this server speaks HTTP/1.0 and HTTP/1.1, not HTTP/{version}")
        _check_host(version, parts.headers)
        fields = {name.lower(): value.strip() for name, value in parts.headers}
        path = url.path or b"/"
        method = parser.get_method().decode()
        envelope, refusal = self._envelope(method, path, parts.headers)
        length, chunked = int(fields.get(b"content-length", b"0")), _is_chunked(fields.get(b"transfer-encoding", b""))
        if envelope is None and refusal is None and (length or chunked) and self._routes is not None:
            refusal = self._routes.refusal(method, path, _lowered(parts.headers))
        if envelope is not None and envelope.header_length is not None:
            refusal = _wrong_split(envelope.header_length, length, fields)
            envelope = envelope if refusal is None else None
        if refusal is not None:
            drop_tracebacks(refusal)  # a remembered head would keep the frames of a connection, and its bytes
        direct = envelope is not None and (envelope.action != "infer" or _is_plain(fields))
        return Head(
            method=method,
            target=parts.url,
            path=path,
            query=url.query or b"",
            http_version=version,
            headers=_lowered(parts.headers),
            length=length,
            chunked=chunked,
            keep_alive=version == "1.1" and not _asks_to_close(parts.headers),
            expects_continue=version == "1.1" and fields.get(b"expect", b"").lower() == b"100-continue",
            envelope=envelope,
            refusal=refusal,
            direct=direct,
            split=envelope.header_length if envelope is not None and direct else None,
        )

    def _envelope(
        self, method: str, path: bytes, headers: HeaderList
    ) -> tuple[Envelope | None, NaiadError | HttpError | None]:
        if method != "POST":
            return None, None
        try:
            return self._envelopes.read(path, headers), None
        except (NaiadError, HttpError) as error:
            return None, error


class _Parts:
    """What httptools calls with the parts of a head."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete = True


def _lowered(headers: HeaderList) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.lower(), value) for name, value in headers)


def _url_of_upgrade(target: bytes) -> "httptools.parser.url_parser.URL":
    """An offer to upgrade is not taken up, which HTTP allows: the request counts as it stands."""
    try:
        return httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError as error:  # CONNECT has a host where others have a path
        raise HttpError(400, "this server is no proxy: CONNECT has no meaning here") from error


def _is_plain(fields: dict[bytes, bytes]) -> bool:
    """Whether neither the body nor its answer is compressed."""
    coding = fields.get(b"content-encoding", b"identity").lower()
    return coding == b"identity" and wanted_coding(fields.get(b"accept-encoding", b"").decode("latin-1")) == "identity"


def _check_host(version: str, headers: HeaderList) -> None:
    """Raises HttpError for what RFC 9112 section 3.2 forbids: HTTP/1.1 without a Host, or with several."""
    count = sum(name.lower() == b"host" for name, _ in headers)
    if count > 1 or (count == 0 and version == "1.1"):
        raise HttpError(400, f"an HTTP/{version} request has one Host header, and this one has {count}")


def _wrong_split(split: int, length: int, fields: dict[bytes, bytes]) -> NaiadError | None:
    """The refusal of a body whose JSON would be longer than it is; one that is compressed may become long enough."""
    too_long = b"content-length" in fields and split > length and b"content-encoding" not in fields
    if split < 0 or too_long:
        most = length if b"content-length" in fields else "size of the body"
        return InvalidArgumentError(f"inference header size should be in range (0, {most}), got: {split}")
    return None


def _asks_to_close(headers: HeaderList) -> bool:
    wishes = (value for name, value in headers if name.lower() == b"connection")
    return any(wish.strip().lower() == b"close" for value in wishes for wish in value.split(b","))


def _is_chunked(codings: bytes) -> bool:
    if not codings:
        return False
    if codings.lower() != b"chunked":
        raise HttpError(501, f"Transfer-Encoding '{codings.decode('latin-1')}' is not supported; send plain chunks")
    return True
