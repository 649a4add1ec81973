"""Certificates that are renewed while a server runs."""

import asyncio
import logging
import ssl

import pytest
import trustme

from naiad.errors import UsageError
from naiad_kit.frontends import renewal
from naiad_kit.frontends.renewal import CertificateRenewal


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
    write()

    assert [watched.renewed(), watched.renewed()] == [True, False]


def test_half_a_pair_is_not_used_until_the_other_half_is_there(watched, write, tmp_path, caplog):
    whole = trustme.CA().issue_cert("localhost")
    (tmp_path / "cert").write_bytes(whole.cert_chain_pems[0].bytes())
    with caplog.at_level(logging.WARNING, "naiad"):
        first = watched.renewed()
    (tmp_path / "key").write_bytes(whole.private_key_pem.bytes())

    assert (first, watched.renewed()) == (False, True)
    assert "the HTTP certificate stays as it was: --http-server-cert" in caplog.text


def test_a_file_that_is_gone_changes_nothing(watched, tmp_path):
    (tmp_path / "cert").unlink()

    assert not watched.renewed()


@pytest.mark.parametrize("error", [ssl.SSLError("key values mismatch"), UsageError("not a pair")])
def test_a_pair_that_changes_while_it_is_put_to_use_is_tried_again(watched, write, monkeypatch, caplog, error):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.001)

    async def main():
        used = asyncio.Event()

        def use():
            if not caplog.messages:
                raise error
            used.set()

        following = asyncio.ensure_future(watched.follow(use))
        write()
        await asyncio.wait_for(used.wait(), 20)
        following.cancel()

    asyncio.run(main())

    assert caplog.messages[0] == f"the HTTP certificate stays as it was: {error}"


def test_the_new_pair_is_put_to_use_on_the_event_loop(watched, write, monkeypatch):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.001)

    async def main():
        used = asyncio.Event()
        following = asyncio.ensure_future(watched.follow(used.set))
        write()
        await asyncio.wait_for(used.wait(), 20)
        following.cancel()

    asyncio.run(main())
