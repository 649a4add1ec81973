"""What tests of the transports and of whole servers share: certificates, and the transports."""

from types import SimpleNamespace

import pytest
import trustme


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """The server's certificate and key, a client's, and the root that both come from: files and their contents."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = trustme.CA(), trustme.CA()
    ours, theirs = authority.issue_cert("localhost"), authority.issue_cert("client")
    contents = {
        "root": authority.cert_pem.bytes(),
        "other_root": stranger.cert_pem.bytes(),
        "cert": b"".join(each.bytes() for each in ours.cert_chain_pems),
        "key": ours.private_key_pem.bytes(),
        "client_cert": b"".join(each.bytes() for each in theirs.cert_chain_pems),
        "client_key": theirs.private_key_pem.bytes(),
        "broken": b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return SimpleNamespace(**contents, file=lambda name: str(folder / name))


@pytest.fixture(scope="module", params=["naiad", "grpcio"])
def transport(request):
    """What speaks HTTP/2: a test that needs it runs with each."""
    return request.param
