"""API keys: what a file may say, what a key opens, and how a change of the file is taken up."""

import asyncio
import logging
import os
from hashlib import sha256
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends import api_keys
from naiad_kit.frontends.api_keys import ApiKeys, credential_of, read_key_file


def hashed(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def presented(key: str) -> bytes:
    return credential_of([(b"authorization", b"Bearer " + key.encode())])


TEXT = f"""
without_key = ["health"]

[[key]]
name = "app"
sha256 = "{hashed("app-key")}"
models = ["celsius", "add*"]

[[key]]
name = "operator"
sha256 = "{hashed("operator-key").upper()}"
apis = ["inference", "model-repository", "statistics"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("key", "api", "model", "known", "message"),
    [
        ("", "health", "", None, ""),
        ("", "inference", "celsius", False, "needs an API key"),
        ("other", "inference", "celsius", False, "unknown or was revoked"),
        ("app-key", "inference", "celsius", None, ""),
        ("app-key", "inference", "add_sub", None, ""),
        ("app-key", "inference", None, None, ""),
        ("app-key", "inference", "Celsius", True, "'app' is not for the model 'Celsius'"),
        ("app-key", "statistics", "celsius", True, "'app' is not for calls in the group 'statistics'"),
        ("app-key", "metadata", "", True, "this call is about no model"),
        ("operator-key", "model-repository", "any", None, ""),
        ("operator-key", "statistics", "", None, ""),
        ("operator-key", "trace", None, True, "not for calls in the group 'trace'"),
    ],
)
def test_a_key_opens_its_groups_and_models(
    path: Path, key: str, api: str, model: str | None, known: bool | None, message: str
) -> None:
    refusal = ApiKeys(str(path)).refusal(presented(key) if key else b"", api, model)

    assert (refusal and refusal.is_known) is known
    assert message in (refusal.message if refusal else "")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(b"authorization", b"Bearer secret")], "secret"),
        ([(b"authorization", b"bearer   secret ")], "secret"),
        ([(b"x-api-key", b" secret ")], "secret"),
        ([(b"authorization", b"Basic c2VjcmV0")], ""),
        ([(b"authorization", b"Bearer ")], ""),
        ([(b"cookie", b"secret")], ""),
    ],
)
def test_a_key_is_read_from_its_header(headers: list[tuple[bytes, bytes]], expected: str) -> None:
    assert credential_of(headers) == (sha256(expected.encode()).digest() if expected else b"")


KEY = f'[[key]]\nname = "a"\nsha256 = "{hashed("a")}"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[key]\n", "keys.toml' is not valid TOML: .*line 1"),
        ("[[keys]]\n", "keys.toml:1: unknown field 'keys', did you mean 'key'?"),
        ('\n[[key]]\nsha256 = "a"\n', "keys.toml:2: a key needs a name"),
        ('[[key]]\nname = "a"\nsha256 = "secret"\n', "keys.toml:1: key 'a' needs sha256, the 64 hexadecimal digits"),
        (KEY + 'model = ["b"]\n', "keys.toml:1: unknown field 'model', did you mean 'models'?"),
        (KEY + "models = []\n", "models of key 'a' must be a list of names or patterns"),
        (KEY + 'apis = ["inferense"]\n', "unknown group 'inferense', did you mean 'inference'?"),
        ('without_key = "health"\n', "without_key must be a list of groups"),
        (KEY + KEY, "keys.toml:4: key 'a' has the name of another key"),
        (KEY + KEY.replace('"a"\n', '"b"\n', 1), "keys.toml:4: key 'b' has the sha256 of another key"),
        ("key = 1\n", "write each key as a table"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_line(path: Path, text: str, message: str) -> None:
    path.write_text(text)

    with pytest.raises(InvalidArgumentError, match=message.replace("?", r"\?")):
        ApiKeys(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"--api-keys: '.*none.toml' cannot be read"):
        read_key_file(str(tmp_path / "none.toml"))


def test_a_changed_file_counts_and_one_with_a_mistake_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "LOOK_SECONDS", 0.01)
    keys = ApiKeys(str(path))

    def refused(key: str) -> bool:
        return keys.refusal(presented(key), "inference", "celsius") is not None

    async def main() -> None:
        loop, warned, changed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def notice(record: logging.LogRecord) -> bool:
            if record.levelno == logging.WARNING:
                loop.call_soon_threadsafe(warned.set)
            return True

        monkeypatch.setattr(caplog.handler, "filters", [notice])
        keys.on_change(changed.set)
        following = asyncio.create_task(keys.follow())
        write(path, "[[key]\n")
        await warned.wait()
        assert (refused("app-key"), refused("new-key"), changed.is_set()) == (False, True, False)
        write(path, TEXT.replace(hashed("app-key"), hashed("new-key")))
        await changed.wait()
        following.cancel()

    with caplog.at_level(logging.WARNING, "naiad"):
        asyncio.run(asyncio.wait_for(main(), 30))

    assert (refused("app-key"), refused("new-key")) == (True, False)
    assert "the API keys stay as they were: --api-keys: " in caplog.text


def write(path: Path, text: str) -> None:
    """Replace the file as one should: whole."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)  # noqa: PTH105
