"""HTTP client of the subcommands that talk to a running server; uses the standard library alone."""

import argparse
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from naiad.errors import NaiadError, NotFoundError, UnavailableError, UnsupportedError, UsageError
from naiad_cli.option_sources import from_variable
from naiad_kit.frontends.restrictions import HEADER_NAME

DEFAULT_URL = "http://localhost:8000"

_FAILURES: Mapping[int, type[NaiadError]] = {
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.NOT_IMPLEMENTED: UnsupportedError,
}
"""The errors of statuses that a command tells apart."""


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add `--url`, `--header` and `--ca-file`, whose defaults are NAIAD_URL, NAIAD_HEADER and NAIAD_CA_FILE."""
    parser.add_argument(
        "--url",
        default=from_variable("url", DEFAULT_URL),
        help="where the server listens (default: NAIAD_URL, else %(default)s)",
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="send this header, as 'Authorization: Bearer KEY'; may be given several times "
        "(default: the lines of NAIAD_HEADER)",
    )
    parser.add_argument(
        "--ca-file",
        default=from_variable("ca-file", ""),
        metavar="FILE",
        help="trust the certificate authorities in this PEM file for https (default: NAIAD_CA_FILE, else the system's)",
    )


def client_of(arguments: argparse.Namespace, timeout: float = 60.0) -> "Client":
    """The client that the options of `add_server_options` describe. Raises UsageError for a header or a file."""
    lines = arguments.header or from_variable("header", "").splitlines()
    context = None
    if arguments.ca_file:
        try:
            context = ssl.create_default_context(cafile=arguments.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ca-file {arguments.ca_file} cannot be used: {error}; name a PEM file") from error
    return Client(arguments.url, timeout, _headers(lines), context)


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers = {}
    for line in filter(str.strip, lines):
        name, colon, value = line.partition(":")
        if not colon or not HEADER_NAME.fullmatch(name.strip()) or not value.isprintable():
            raise UsageError(f"--header '{name}' is not a header; write --header 'Authorization: Bearer KEY'")
        headers[name.strip()] = value.strip()
    return headers


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered with status 200: its headers, with names in lower case, and its body."""

    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises NaiadError when it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise NaiadError("the answer is not valid JSON; is this an inference server?") from error


@dataclass(frozen=True, slots=True)
class Client:
    """A server at `url`; `timeout` in seconds bounds each wait for it, `headers` go with every request.

    `advice` is what to do where nothing answers.
    """

    url: str = DEFAULT_URL
    timeout: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    advice: str = "start one with naiad serve DIR, or name another with --url"

    def get(self, *path: str) -> Answer:
        """GET the path whose parts these are. Raises NaiadError with the server's own words for any other status."""
        return self._call(self._request(path))

    def post(self, *path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """POST the body. Raises NaiadError with the server's words for any other status, UnsupportedError for 501."""
        return self._call(self._request(path, body, headers))

    def events(self, *path: str, body: bytes) -> Iterator[Any]:
        """POST the body, and yield the JSON of each server-sent event as it comes. Raises NaiadError as `post`."""
        try:
            with self._open(self._request(path, body, {"Content-Type": "application/json"})) as response:
                for line in response:
                    if line.startswith(b"data:"):
                        yield json.loads(line[5:])
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unavailable(error) from error

    def _request(
        self, path: Sequence[str], body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> urllib.request.Request:
        every = {**self.headers, **(headers or {})}
        try:
            return urllib.request.Request(self._address(path), data=body, headers=every)  # noqa: S310 - the scheme is checked
        except ValueError as error:
            raise UsageError(f"--url {self.url} is not an HTTP address: {error}; write it as {DEFAULT_URL}") from error

    def _address(self, path: Sequence[str]) -> str:
        base = self.url if "://" in self.url else f"http://{self.url}"
        try:
            parts = urllib.parse.urlsplit(base)
            port = parts.port  # raises ValueError for what is not a number
        except ValueError as error:
            raise UsageError(f"--url {self.url} is not an HTTP address: {error}; write it as {DEFAULT_URL}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise UsageError(f"--url {self.url} is not an HTTP address; write it as {DEFAULT_URL}")
        return "/".join([base.rstrip("/"), *(urllib.parse.quote(part, safe="") for part in path)])

    def _open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        try:
            opened: http.client.HTTPResponse = urllib.request.urlopen(  # noqa: S310 - the scheme is checked
                request, timeout=self.timeout, context=self.tls
            )
        except urllib.error.HTTPError as error:
            failure = _FAILURES.get(error.code, NaiadError)
            with error:
                raise failure(_reason(error)) from error
        return opened

    def _call(self, request: urllib.request.Request) -> Answer:
        try:
            with self._open(request) as response:
                return Answer({name.lower(): value for name, value in response.headers.items()}, response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> UnavailableError:
        cause = getattr(error, "reason", error)
        advice = self.advice
        if isinstance(cause, ssl.SSLCertVerificationError):
            advice = "name the authority that signed its certificate with --ca-file FILE"
        return UnavailableError(f"no answer from {self.url}: {cause}; {advice}")


def _reason(error: urllib.error.HTTPError) -> str:
    body = error.read()
    if body.startswith(b"data:"):  # an event stream that begins with its error
        body = body[5:]
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code} {error.reason}: {body[:200].decode(errors='replace')}".rstrip(": ")
