"""A server in an environment without naiad-tracing: trace settings and options say what to install."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tritonclient.grpc as triton

from .environments import with_members

if TYPE_CHECKING:
    from conftest import ServerProcess


@pytest.fixture(scope="module")
def naiad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` with both frontends and no tracer."""
    return with_members(tmp_path_factory.mktemp("untraced") / "venv", ["naiad", "naiad-http", "naiad-grpc"])


def test_trace_settings_are_answered_with_what_to_install(
    serve: "Callable[..., ServerProcess]", naiad: Path, tmp_path: Path
) -> None:
    server = serve(tmp_path, "--model-control-mode=explicit", naiad=naiad, frontends=["http", "grpc"])
    target = server.wait_for(r"grpc frontend listens at grpc://(\S+:\d+)").group(1)

    url = server.url
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/v2/trace/setting")
    with triton.InferenceServerClient(target) as client, pytest.raises(Exception, match="naiad-tracing") as failed:
        client.update_trace_settings(settings={"trace_rate": "1"})
    with urllib.request.urlopen(f"{url}/v2") as answer:
        extensions = json.load(answer)["extensions"]

    assert refused.value.code == 501
    assert "pip install 'naiad-tracing'" in json.load(refused.value)["error"]
    assert "StatusCode.UNIMPLEMENTED" in str(failed.value)
    assert ("trace" in extensions, "statistics" in extensions) == (False, True)


def test_a_trace_option_is_unknown_and_answered_with_what_to_install(naiad: Path, tmp_path: Path) -> None:
    command = [naiad, "serve", "--trace-config=level=TIMESTAMPS", tmp_path]

    answer = subprocess.run(command, capture_output=True, text=True, check=False)

    assert answer.returncode == 1
    assert answer.stderr == (
        "naiad serve: unknown option --trace-config. It comes with naiad-tracing: pip install 'naiad-tracing'.\n"
    )
