"""Access to the dashboard: allowed hosts, restricted groups of calls, security headers, and path prefixes."""

import socket
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from naiad_dashboard.options import prefix
from naiad_kit.frontends.api_keys import ApiKeys, credential_of
from naiad_kit.frontends.restrictions import RestrictedApis

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
OWN_HEADER = "naiad-dashboard"
"""The header that the dashboard's scripts send with each POST."""

_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """ASGI middleware: adds the security headers to each response, and forbids to store what has no rule of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class AllowedHosts:
    """ASGI middleware: refuses requests whose `Host` header has a name that is not allowed.

    That stops DNS rebinding: a page of another site cannot point its own name at this server and read what it answers.
    A page that was opened by an IP address cannot do that, so addresses are always allowed.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        """`names` are allowed besides localhost and the name of this machine; `*` allows every name."""
        self._app = app
        machine = socket.gethostname().lower()
        self._names = {"localhost", machine, f"{machine}.local", *names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        app = self._app
        if scope["type"] == "http":
            host = _host_name(Headers(scope=scope).get("host", ""))
            if not self._allows(host):
                text = (
                    f"the dashboard does not serve the host '{host}'; allow it with --dashboard-allowed-hosts={host}\n"
                )
                app = PlainTextResponse(text, 403)
        await app(scope, receive, send)

    def _allows(self, host: str) -> bool:
        if "*" in self._names or host in self._names or host.endswith(".localhost"):
            return True
        try:
            return bool(ip_address(host))
        except ValueError:
            return False


def _host_name(header: str) -> str:
    """The name or address in a `Host` header, without its port, in lower case."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return header


class PathPrefix:
    """ASGI middleware: takes the prefix of a proxy from the path, where the proxy left it, and keeps it for links.

    The prefix is the option's, or that of the header `X-Forwarded-Prefix`.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http":
            base = self._root_path or _forwarded_prefix(Headers(scope=scope).get("x-forwarded-prefix", ""))
            path: str = scope["path"]
            if base and (path == base or path.startswith(f"{base}/")):
                path = path[len(base) :] or "/"
            scope = {**scope, "path": path, "root_path": "", "naiad_base": base}
        await self._app(scope, receive, send)


def _forwarded_prefix(text: str) -> str:
    try:
        return prefix(text.partition(",")[0].strip())
    except ValueError:
        return ""


def is_same_origin(headers: Headers) -> bool:
    """Whether a request that changes or runs something comes from a page of this dashboard, or from no browser.

    Browsers send `Sec-Fetch-Site` and `Origin` with it, and no page can forge them.
    """
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin", "")
    host = headers.get("x-forwarded-host", "") or headers.get("host", "")
    return site in ("same-origin", "none") and (not origin or _host_of(origin) == host)


def _host_of(origin: str) -> str | None:
    """Host and port of an origin, None for what is not one."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def is_own_request(headers: Headers) -> bool:
    """Whether a request that changes or runs something was made by a script of this dashboard.

    Besides `is_same_origin` it has the header `naiad-dashboard` and a body of JSON: a page of another origin can send
    neither without a preflight, which this server does not grant.
    """
    is_json = headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    return is_json and headers.get(OWN_HEADER) == "1" and is_same_origin(headers)


class Restrictions:
    """The groups of calls that `--http-restricted-api` restricts, and the API keys of the server.

    The dashboard shows restricted groups to the same callers, and runs requests for the keys that may run them. A page
    needs no key, which a browser cannot send with a link.
    """

    def __init__(self, settings: Mapping[str, Any], keys: ApiKeys | None) -> None:
        self._rules = RestrictedApis("--http-restricted-api", settings.get("http-restricted-api", ()))
        self._keys = keys

    def refusal(self, apis: tuple[str, ...], headers: Headers) -> str:
        """The header that the caller of one of these groups must send and has not; "" lets the call pass."""
        return next(filter(None, (self._rules.refusal(api, headers.raw) for api in apis)), "")

    def key_refusal(self, apis: tuple[str, ...], headers: Headers, model: str) -> str:
        """Why the API key of a caller is not enough for these groups and that model; "" lets the call pass."""
        if self._keys is None:
            return ""
        credential = credential_of(headers.raw)
        refusals = (self._keys.refusal(credential, api, model) for api in apis)
        return next((each.message for each in refusals if each is not None), "")
