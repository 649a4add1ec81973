"""The agent checksum: a model is loaded when its files have the digests of its configuration."""

import hashlib
from pathlib import Path

import pytest

import naiad_repository_agents
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

WEIGHTS = b"weights"


def model(root: Path, key: str, digest: str) -> FakeBackend:
    """The model `m` with 1/weights, whose digest is to be that one; its backend."""
    backend = FakeBackend()
    agents = f'agents [ {{ name: "checksum" parameters {{ key: "{key}" value: "{digest}" }} }} ]'
    folder = backend.write(root, "m", f"model_repository_agents {{ {agents} }}")
    (folder / "1" / "weights").write_bytes(WEIGHTS)
    return backend


async def reason(root: Path, backend: FakeBackend) -> str:
    """Why `m` is not loaded; the test fails when it is."""
    async with running(root, backend, naiad_repository_agents) as server:
        with pytest.raises(NaiadError) as raised:
            await server.infer(request("m", 1))
    return str(raised.value)


@pytest.mark.parametrize("algorithm", ["MD5", "SHA256"])
async def test_a_model_whose_file_has_the_digest_is_served(tmp_path: Path, algorithm: str) -> None:
    backend = model(tmp_path, f"{algorithm}:1/weights", hashlib.new(algorithm, WEIGHTS).hexdigest().upper())

    async with running(tmp_path, backend, naiad_repository_agents) as server:
        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]


@pytest.mark.parametrize("algorithm", ["MD5", "SHA256"])
async def test_a_model_whose_file_differs_is_not_loaded_and_both_digests_are_named(
    tmp_path: Path, algorithm: str
) -> None:
    expected, actual = (hashlib.new(algorithm, content).hexdigest() for content in (b"other", WEIGHTS))

    message = await reason(tmp_path, model(tmp_path, f"{algorithm}:1/weights", expected))

    assert f"'m': Mismatched {algorithm} hash for file 1/weights, expect: {expected}, got: {actual}" in message


@pytest.mark.parametrize(
    ("key", "digest", "message"),
    [
        ("MD5:1/gone", "0" * 32, "the MD5 digest of '1/gone' cannot be checked: there is no such file"),
        ("MD5:1", "0" * 32, "the MD5 digest of '1' cannot be checked: there is no such file"),
        ("SHA256:../m2/weights", "0" * 64, "the file '../m2/weights' of the agent 'checksum' is not inside"),
        ("SHA256:1/weights", "0" * 32, "the value of 'SHA256:1/weights' is not a digest of 64 hexadecimal digits"),
        ("SHA1:1/weights", "0" * 40, "the parameter 'SHA1:1/weights' of the repository agent 'checksum' is neither"),
        ("MD5:", "0" * 32, "the parameter 'MD5:' of the repository agent 'checksum' is neither MD5:<file> nor"),
    ],
)
async def test_a_parameter_that_checks_nothing_fails_the_load(
    tmp_path: Path, key: str, digest: str, message: str
) -> None:
    assert message in await reason(tmp_path, model(tmp_path, key, digest))


async def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    backend = model(tmp_path, "MD5:1/link", hashlib.md5(WEIGHTS).hexdigest())
    (tmp_path / "m" / "1" / "link").symlink_to(tmp_path.parent)

    assert "is not inside the model's folder" in await reason(tmp_path, backend)


async def test_an_agent_without_parameters_fails_the_load(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", 'model_repository_agents { agents [ { name: "checksum" } ] }')

    text = await reason(tmp_path, backend)

    assert "the repository agent 'checksum' has no parameters, and would check nothing" in text


async def test_a_reload_with_a_changed_file_leaves_the_earlier_generation_in_service(tmp_path: Path) -> None:
    backend = model(tmp_path, "MD5:1/weights", hashlib.md5(WEIGHTS).hexdigest())

    async with running(tmp_path, backend, naiad_repository_agents, model_control_mode="explicit") as server:
        await server.load("m")
        (tmp_path / "m" / "1" / "weights").write_bytes(b"forged")
        with pytest.raises(InvalidArgumentError, match="Mismatched MD5 hash"):
            await server.load("m")
        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]
