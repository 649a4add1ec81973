"""HTTP client of the subcommands that talk to a running server; uses the standard library alone."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from naiad.errors import InvalidArgumentError, NaiadError, UnavailableError

DEFAULT_URL = "http://localhost:8000"


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
    """A server at `url`; `timeout` in seconds bounds each wait for it."""

    url: str = DEFAULT_URL
    timeout: float = 60.0

    def get(self, *path: str) -> Answer:
        """GET the path whose parts these are. Raises NaiadError with the server's own words for any other status."""
        return self._call(urllib.request.Request(self._address(path)))  # noqa: S310 - the scheme is checked

    def post(self, *path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """POST the body. Raises NaiadError with the server's own words for any other status."""
        request = urllib.request.Request(self._address(path), data=body, headers=dict(headers or {}))  # noqa: S310 - the scheme is checked
        return self._call(request)

    def _address(self, path: tuple[str, ...]) -> str:
        base = self.url if "://" in self.url else f"http://{self.url}"
        if not base.startswith(("http://", "https://")):
            raise InvalidArgumentError(f"--url {self.url} is not an HTTP address; write it as {DEFAULT_URL}")
        return "/".join([base.rstrip("/"), *(urllib.parse.quote(part, safe="") for part in path)])

    def _call(self, request: urllib.request.Request) -> Answer:
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:  # noqa: S310 - the scheme is checked
                return Answer({name.lower(): value for name, value in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            raise NaiadError(_reason(error)) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            cause = getattr(error, "reason", error)
            raise UnavailableError(
                f"no answer from {self.url}: {cause}; start one with naiad serve DIR, or name another with --url"
            ) from error


def _reason(error: urllib.error.HTTPError) -> str:
    body = error.read()
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code} {error.reason}: {body[:200].decode(errors='replace')}".rstrip(": ")
