"""The agent signature, with keys, certificates and signatures that model-signing makes."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

import naiad_repository_agents
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

AGENT = 'model_repository_agents { agents [ { name: "signature" } ] }'


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with the key `signer.key`, its public key `signer.pub`, and the public key `other.pub` of another."""
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("signer", "other"):
        key = folder / f"{name}.key"
        _run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        _run("openssl", "ec", "-in", key, "-pubout", "-out", folder / f"{name}.pub")
    return folder


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def root(tmp_path: Path, backend: FakeBackend) -> Path:
    """A repository with the model `m`, which has 1/weights and names the agent."""
    folder = backend.write(tmp_path / "models", "m", AGENT)
    (folder / "1" / "weights").write_bytes(b"weights")
    return folder.parent


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=60)


def sign(folder: Path, key: Path, *certificates: Path) -> None:
    """Sign a model's folder with a key, or with that of the first of the certificates."""
    from model_signing import hashing, signing  # takes half a second, which each process of a test run would need

    signature = folder / "model.sig"
    config = signing.Config().set_hashing_config(hashing.Config().set_ignored_paths(paths=[signature]))
    if certificates:
        config.use_certificate_signer(
            private_key=key, signing_certificate=certificates[0], certificate_chain=certificates[1:]
        )
    else:
        config.use_elliptic_key_signer(private_key=key)
    config.sign(folder, signature)


async def reason(root: Path, backend: FakeBackend, **options: Any) -> str:
    """Why `m` is not loaded; the test fails when it is."""
    async with running(root, backend, naiad_repository_agents, **options) as server:
        with pytest.raises(NaiadError) as raised:
            await server.infer(request("m", 1))
    return str(raised.value)


async def test_a_model_that_the_command_has_signed_is_served(root: Path, keys: Path, backend: FakeBackend) -> None:
    command = (sys.executable, "-m", "model_signing", "sign", "key", root / "m", "--private_key", keys / "signer.key")
    _run(*command, "--signature", root / "m" / "model.sig")
    key = str(keys / "signer.pub")

    async with running(root, backend, naiad_repository_agents, signature_public_key=key, require_signed=True) as server:
        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]


async def test_files_of_git_and_those_that_the_signer_left_out_may_change(
    root: Path, keys: Path, backend: FakeBackend
) -> None:
    (root / "m" / "README.md").write_text("before")
    command = (sys.executable, "-m", "model_signing", "sign", "key", root / "m", "--private_key", keys / "signer.key")
    _run(*command, "--signature", root / "m" / "model.sig", "--ignore-paths", root / "m" / "README.md")
    (root / "m" / "README.md").write_text("after")
    (root / "m" / ".gitignore").write_text("added")
    key = str(keys / "signer.pub")

    async with running(root, backend, naiad_repository_agents, signature_public_key=key, require_signed=True) as server:
        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]


def _changed(folder: Path) -> None:
    (folder / "1" / "weights").write_bytes(b"forged")


def _added(folder: Path) -> None:
    (folder / "1" / "more").write_bytes(b"")


def _removed(folder: Path) -> None:
    (folder / "1" / "weights").unlink()


HASHES = [hashlib.sha256(content).hexdigest() for content in (b"weights", b"forged")]


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (_changed, ["Hash mismatch for '1/weights'", *HASHES]),
        (_added, ["Extra files found in model 'm': 1/more"]),
        (_removed, ["Missing files in model 'm': 1/weights"]),
    ],
)
async def test_a_folder_that_changed_since_it_was_signed_is_not_loaded(
    root: Path, keys: Path, backend: FakeBackend, change: Callable[[Path], None], messages: list[str]
) -> None:
    sign(root / "m", keys / "signer.key")
    change(root / "m")

    text = await reason(root, backend, signature_public_key=str(keys / "signer.pub"))

    assert [message for message in messages if message not in text] == []


async def test_a_signature_by_another_key_is_refused(root: Path, keys: Path, backend: FakeBackend) -> None:
    sign(root / "m", keys / "signer.key")

    text = await reason(root, backend, signature_public_key=str(keys / "other.pub"))

    assert "model 'm': the signature 'model.sig' does not hold: " in text


async def test_a_signature_that_leads_to_a_certificate_is_accepted_and_another_is_not(
    root: Path, tmp_path: Path, backend: FakeBackend
) -> None:
    signer, other = trustme.CA(key_type=trustme.KeyType.ECDSA), trustme.CA(key_type=trustme.KeyType.ECDSA)
    leaf = signer.issue_cert("models.example.org", key_type=trustme.KeyType.ECDSA)
    paths = {name: tmp_path / f"{name}.pem" for name in ("key", "leaf", "root", "other")}
    leaf.private_key_pem.write_to_path(str(paths["key"]))
    leaf.cert_chain_pems[0].write_to_path(str(paths["leaf"]))
    signer.cert_pem.write_to_path(str(paths["root"]))
    other.cert_pem.write_to_path(str(paths["other"]))
    sign(root / "m", paths["key"], paths["leaf"], paths["root"])

    async with running(root, backend, naiad_repository_agents, signature_certificates=(str(paths["root"]),)) as server:
        await server.infer(request("m", 1))
    text = await reason(root, backend, signature_certificates=(str(paths["other"]),))

    assert "does not hold" in text


async def test_a_server_that_requires_signatures_loads_no_model_without_one(
    root: Path, keys: Path, backend: FakeBackend
) -> None:
    backend.write(root, "m")  # which names no agent

    text = await reason(root, backend, require_signed=True, signature_public_key=str(keys / "signer.pub"))

    assert "model 'm' is not signed: its folder has no 'model.sig'" in text


async def test_files_of_a_load_request_are_refused_where_signatures_are_required(
    root: Path, keys: Path, backend: FakeBackend
) -> None:
    sign(root / "m", keys / "signer.key")
    options: dict[str, Any] = {"signature_public_key": str(keys / "signer.pub"), "require_signed": True}

    async with running(root, backend, naiad_repository_agents, model_control_mode="explicit", **options) as server:
        with pytest.raises(InvalidArgumentError, match="model 'm' is not signed"):
            await server.load("m", '{"backend": "fake"}', {"1/weights": b"forged"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "start the server with --signature-public-key or --signature-certificates, which say who may sign"),
        ({"signature_public_key": "a", "signature_certificates": ("b",)}, "not with both"),
        (
            {"signature_public_key": "/gone.pub"},
            "there is no file '/gone.pub' to verify model 'm' with",
        ),
    ],
)
async def test_a_server_without_one_key_verifies_nothing(
    root: Path, backend: FakeBackend, options: dict[str, Any], message: str
) -> None:
    (root / "m" / "model.sig").write_text("{}")

    assert message in await reason(root, backend, **options)


async def test_a_parameter_that_the_agent_does_not_know_fails_the_load(root: Path, backend: FakeBackend) -> None:
    agents = 'agents [ { name: "signature" parameters { key: "public_key" value: "mine.pub" } } ]'
    backend.write(root, "m", f"model_repository_agents {{ {agents} }}")

    assert "the agent 'signature' has no parameter public_key" in await reason(root, backend)


async def test_a_signature_that_is_no_signature_is_refused(root: Path, keys: Path, backend: FakeBackend) -> None:
    (root / "m" / "model.sig").write_text("not JSON")

    text = await reason(root, backend, signature_public_key=str(keys / "signer.pub"))

    assert "'model.sig' does not hold" in text


async def test_a_server_without_the_library_says_what_to_install(
    root: Path, keys: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "model_signing", None)

    text = await reason(root, backend, signature_public_key=str(keys / "signer.pub"))

    assert "pip install 'naiad-repository-agents[signature]'" in text
