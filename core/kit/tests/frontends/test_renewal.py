"""Certificates that are renewed while a server runs."""

import asyncio
import logging
import ssl
from contextlib import suppress

import pytest
import trustme

from naiad_kit.frontends import renewal
from naiad_kit.frontends.renewal import CertificateRenewal
from naiad_kit.frontends.tls import load_pair


@pytest.fixture
def write(tmp_path):
    """Write a new pair, or a part of one, and return the certificate."""

    def write(*parts):
        issued = trustme.CA().issue_cert("localhost")
        contents = {"cert": issued.cert_chain_pems[0].bytes(), "key": issued.private_key_pem.bytes()}
        for part in parts or ("cert", "key"):
            (tmp_path / part).write_bytes(contents[part])
        return contents["cert"]

    write()
    return write


@pytest.fixture
def watched(write, tmp_path):
    settings = {"http-server-cert": str(tmp_path / "cert"), "http-server-key": str(tmp_path / "key")}
    return CertificateRenewal(settings, "HTTP")


def test_a_pair_that_stays_is_not_renewed(watched):
    assert not watched.renewed()


def test_a_new_pair_is_renewed_once(watched, write):
    certificate = write()

    first, second = watched.renewed(), watched.renewed()

    assert (first[0], second) == (certificate, None)


def test_half_a_pair_is_not_used_until_the_other_half_is_there(watched, write, tmp_path, caplog):
    whole = trustme.CA().issue_cert("localhost")
    (tmp_path / "cert").write_bytes(whole.cert_chain_pems[0].bytes())
    with caplog.at_level(logging.WARNING, "naiad"):
        first = watched.renewed()
    (tmp_path / "key").write_bytes(whole.private_key_pem.bytes())

    assert (first, watched.renewed()) == (None, (whole.cert_chain_pems[0].bytes(), whole.private_key_pem.bytes()))
    assert "the HTTP certificate stays as it was: --http-server-cert" in caplog.text


def test_a_file_that_is_gone_changes_nothing(watched, tmp_path):
    (tmp_path / "cert").unlink()

    assert not watched.renewed()


def test_the_pair_that_was_checked_is_used_though_the_files_have_changed_again(watched, write, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    certificate = write()

    renewed = watched.renewed()
    write("key")
    load_pair(context, *renewed)

    assert _certificate_of(context) == ssl.PEM_cert_to_DER_cert(certificate.decode())


def _certificate_of(context):
    """The certificate of a server with that context, in DER, after a handshake in memory."""
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = stranger.wrap_bio(to_client, to_server), context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert(binary_form=True)


def test_a_pair_that_cannot_be_used_is_tried_again(watched, write, monkeypatch, caplog):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.001)

    async def main():
        used = asyncio.Event()

        def use(_certificate, _key):
            if not caplog.messages:
                raise OSError("too many open files")
            used.set()

        following = asyncio.ensure_future(watched.follow(use))
        write()
        await asyncio.wait_for(used.wait(), 20)
        following.cancel()

    asyncio.run(main())

    assert caplog.messages[0] == "the HTTP certificate stays as it was: too many open files"


def test_the_new_pair_is_put_to_use_on_the_event_loop(watched, write, monkeypatch):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.001)

    async def main():
        used = asyncio.get_running_loop().create_future()
        following = asyncio.ensure_future(watched.follow(lambda certificate, _key: used.set_result(certificate)))
        certificate = write()
        assert await asyncio.wait_for(used, 20) == certificate
        following.cancel()

    asyncio.run(main())
