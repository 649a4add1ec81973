"""A server in an environment without naiad-metrics: it serves, and its options say what to install."""

import http.client
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from .environments import with_members

if TYPE_CHECKING:
    from conftest import ServerProcess

DOUBLE = """
import naiad_custom

@naiad_custom.model
def double(text_input: naiad_custom.Array[naiad_custom.INT64, 1]) -> naiad_custom.Array[naiad_custom.INT64, 1]:
    return text_input + text_input
"""


@pytest.fixture(scope="module")
def naiad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` with HTTP, Python models and no metrics."""
    return with_members(tmp_path_factory.mktemp("unmeasured") / "venv", ["naiad", "naiad-custom", "naiad-http"])


def test_a_request_for_load_headers_is_answered_without_them(
    serve: "Callable[..., ServerProcess]", naiad: Path, tmp_path: Path
) -> None:
    (tmp_path / "double" / "1").mkdir(parents=True)
    (tmp_path / "double" / "1" / "model.py").write_text(DOUBLE)

    server = serve(tmp_path, naiad=naiad, frontends=["http"])
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    body = json.dumps({"text_input": 4})
    connection.request("POST", "/v2/models/double/generate", body, {"endpoint-load-metrics-format": "json"})
    answer = connection.getresponse()

    assert (answer.status, answer.getheader("endpoint-load-metrics")) == (200, None)
    answer.read()
    connection.close()


def test_a_metrics_option_is_unknown_and_answered_with_what_to_install(naiad: Path, tmp_path: Path) -> None:
    command = [naiad, "serve", "--allow-metrics=false", tmp_path]

    answer = subprocess.run(command, capture_output=True, text=True, check=False)

    assert answer.returncode == 1
    assert answer.stderr == (
        "naiad serve: unknown option --allow-metrics. It comes with naiad-metrics: pip install 'naiad-metrics'.\n"
    )
