"""`tritonserver` as a process: the words of a start script for Triton start a server."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

TRITONSERVER = Path(sys.executable).with_name("tritonserver")
MODEL = """
from naiad_custom import FP32, Array, model


@model
def add(a: Array[FP32, 1], b: Array[FP32, 1]) -> Array[FP32, 1]:
    return a + b
"""
WORDS = (
    "--strict-model-config=false",
    "--pinned-memory-pool-byte-size=0",
    "--http-address",
    "127.0.0.1",
    "--grpc-address=127.0.0.1",
    "--allow-metrics=false",
    "--dashboard-port=0",
)


OF_A_SCRIPT = (str(TRITONSERVER), "--model-repository={models}", *WORDS, "--http-port=0", "--allow-grpc=false")
OF_KSERVE = (
    str(TRITONSERVER.with_name("naiad")),  # the entry point of the image, before the arguments of KServe's runtime
    "tritonserver",
    "--model-store={models}",
    "--grpc-port=0",
    "--http-port=0",
    "--allow-grpc=true",
    "--allow-http=true",
    *WORDS,
)


@pytest.mark.parametrize("words", [OF_A_SCRIPT, OF_KSERVE], ids=["script", "kserve"])
def test_the_words_of_a_start_script_or_a_pod_for_triton_start_a_server(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "add" / "1" / "model.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODEL)
    command = [word.format(models=tmp_path) for word in words]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            log = ""
            while not (listening := re.search(r"http frontend listens at (http://\S+)\"", log)):
                line = process.stdout.readline()
                assert line, log
                log += line
            with urlopen(f"{listening.group(1)}/v2/models/add/ready", timeout=30) as answer:
                status = answer.status
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        finally:
            process.kill()

    assert (status, process.returncode) == (200, 0)
    assert "--pinned-memory-pool-byte-size has no effect" in log


@pytest.mark.parametrize("words", [OF_A_SCRIPT[:1], OF_KSERVE[:2]], ids=["script", "kserve"])
def test_the_help_is_that_of_serve(words: tuple[str, ...]) -> None:
    shown = subprocess.run([*words, "--help"], capture_output=True, text=True, timeout=60, check=True)

    assert shown.stdout.startswith("tritonserver runs `naiad serve`")
    assert "--model-repository" in shown.stdout


def test_an_option_that_neither_server_has_is_refused() -> None:
    ended = subprocess.run(
        [TRITONSERVER, "--no-such-option=1"], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode != 0
    assert "unknown option --no-such-option" in ended.stderr
