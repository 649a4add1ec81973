"""docs/security.md: the file of keys and the command that makes a key work as they stand."""

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from naiad_kit.frontends.api_keys import ApiKeys, read_key_file

PAGE = (Path(__file__).parents[1] / "docs" / "security.md").read_text()


def block(language: str, having: str) -> str:
    (text,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if having in text]
    return text


def test_the_file_of_keys_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(block("toml", "[[key]]"))

    file = read_key_file(str(path))

    assert [(key.name, key.models) for key in file.keys] == [("app", ("celsius", "add*")), ("operator", None)]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes the key with openssl")
def test_the_commands_make_a_key_that_opens_the_server(tmp_path: Path) -> None:
    commands = block("sh", "openssl rand")
    done = subprocess.run(["bash", "-ec", commands], capture_output=True, text=True, check=True)
    sent = re.search(r"the client sends: (\S+)", done.stdout)
    line = re.search(r"^sha256 = .*$", done.stdout, re.MULTILINE)
    assert sent
    assert line
    path = tmp_path / "keys.toml"
    path.write_text(f'[[key]]\nname = "app"\n{line[0]}\n')

    keys = ApiKeys(str(path))

    assert len(sent[1]) == 64
    assert keys.refusal(sha256(sent[1].encode()).digest(), "inference", "any") is None
