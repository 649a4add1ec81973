"""TLS as the options of this frontend ask for it."""

import ssl
from collections.abc import Mapping
from typing import Any

from naiad_kit.frontends import tls


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
