"""TLS of tests: what a client trusts and shows, and a key behind a password."""

import ssl
from pathlib import Path

from cryptography.hazmat.primitives import serialization


def client_context(root: Path, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """What a client needs that trusts the root and perhaps shows a certificate with its key."""
    context = ssl.create_default_context(cafile=root)
    if own is not None:
        context.load_cert_chain(*own)
    return context


def encrypt(key: Path, path: Path) -> None:
    """Write the key behind a password."""
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    how = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
