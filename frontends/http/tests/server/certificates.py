"""Certificates for tests, made by the openssl program."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM."""

    cert: Path
    key: Path


def _openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_authority(folder, name):
    """A root certificate."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", f"/CN={name}", "-keyout", pair.key, "-out", pair.cert),
    )
    return pair


def make_pair(folder, name, authority):
    """A certificate for localhost from that authority."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}"),
        *("-keyout", pair.key, "-out", request),
    )
    _openssl(
        *("x509", "-req", "-in", request, "-CA", authority.cert, "-CAkey", authority.key, "-CAcreateserial"),
        *("-days", "2", "-extfile", extensions, "-out", pair.cert),
    )
    return pair


def encrypt(pair, path):
    """The pair with its key behind a password."""
    _openssl("pkcs8", "-topk8", "-in", pair.key, "-passout", "pass:secret", "-out", path)
    return Pair(pair.cert, path)


def client_context(authority, own=None):
    """What a client needs that trusts the authority and perhaps shows a certificate."""
    context = ssl.create_default_context(cafile=authority.cert)
    if own is not None:
        context.load_cert_chain(own.cert, own.key)
    return context
