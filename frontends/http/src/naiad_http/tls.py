"""TLS as the options of this frontend ask for it."""

import ssl
from collections.abc import Mapping
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.protocol import tls

_FILES = ("http-server-cert", "http-server-key", "http-root-cert")


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What the options ask for, None for plain connections; TLS 1.2 and newer.

    With `--http-root-cert` clients may show a certificate from there, with `--http-use-ssl-mutual` they must. Raises
    InvalidArgumentError for a file that is missing or no certificate, for a key of another certificate, and for files
    without `--http-use-ssl`, which would otherwise be served in the clear.
    """
    context = tls.server_context(settings, "HTTP")
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])
        return context
    given = next((name for name in _FILES if settings[name]), "")
    if given:
        raise InvalidArgumentError(f"--{given} is given, but HTTP is to be served in the clear; add --http-use-ssl")
    return None
