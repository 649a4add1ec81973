"""A command line that was written for Triton starts a server: every option of it is taken, in every form."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tritonclient.http as triton

from naiad import PluginRegistry
from naiad.options import Option
from naiad_cli.main import command_parser
from naiad_cli.options import chosen_values
from naiad_cli.parser import Parser
from naiad_cli.triton_options import WITHOUT_EFFECT, triton_options

from .written import ECHO, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

TRITON = {
    "allow-client-shm": "true",
    "allow-cpu-metrics": "FALSE",
    "allow-gpu-metrics": "false",
    "allow-grpc": "1",
    "allow-http": "true",
    "allow-metrics": "True",
    "allow-sagemaker": "true",
    "allow-vertex-ai": "true",
    "backend-config": "python,shm-default-byte-size=1048576",
    "backend-directory": "/opt/tritonserver/backends",
    "buffer-manager-thread-count": "2",
    "cache-config": "local,size=1048576",
    "cache-directory": "/opt/tritonserver/caches",
    "cuda-memory-pool-byte-size": "0:67108864",
    "cuda-virtual-address-size": "0:1073741824",
    "disable-auto-complete-config": "true",
    "enable-peer-access": "false",
    "exit-on-error": "false",
    "exit-timeout-secs": "20",
    "grpc-address": "127.0.0.1",
    "grpc-header-forward-pattern": "^x-.*$",
    "grpc-http2-max-ping-strikes": "2",
    "grpc-http2-max-pings-without-data": "2",
    "grpc-http2-min-recv-ping-interval-without-data": "300000",
    "grpc-infer-allocation-pool-size": "16",
    "grpc-infer-response-compression-level": "LOW",
    "grpc-infer-thread-count": "4",
    "grpc-keepalive-permit-without-calls": "1",
    "grpc-keepalive-time": "7200000",
    "grpc-keepalive-timeout": "20000",
    "grpc-max-connection-age": "100000",
    "grpc-max-connection-age-grace": "100000",
    "grpc-max-response-pool-size": "100",
    "grpc-port": "8001",
    "grpc-restricted-protocol": "model-repository:key=value",
    "grpc-root-cert": "root.pem",
    "grpc-server-cert": "cert.pem",
    "grpc-server-key": "key.pem",
    "grpc-use-ssl": "false",
    "grpc-use-ssl-mutual": "false",
    "host-policy": "cpu,cpu-cores=0-3",
    "http-address": "127.0.0.1",
    "http-header-forward-pattern": "^x-.*$",
    "http-max-input-size": "67108864",
    "http-port": "8000",
    "http-restricted-api": "model-repository:key=value",
    "http-thread-count": "16",
    "id": "server",
    "load-model": "*",
    "log-error": "true",
    "log-file": "",
    "log-format": "ISO8601",
    "log-info": "true",
    "log-verbose": "TRUE",
    "log-warning": "true",
    "metrics-address": "127.0.0.1",
    "metrics-config": "summary_latencies=true",
    "metrics-interval-ms": "500.5",
    "metrics-port": "8002",
    "min-supported-compute-capability": "7.5",
    "model-config-name": "h100",
    "model-control-mode": "EXPLICIT",
    "model-load-gpu-limit": "0:0.8",
    "model-load-retry-count": "1",
    "model-load-thread-count": "8",
    "model-namespacing": "true",
    "model-repository": "/models",
    "model-store": "/models",
    "pinned-memory-pool-byte-size": "1024",
    "rate-limit": "EXECUTION_COUNT",
    "rate-limit-resource": "R1:4:0",
    "repoagent-directory": "/opt/tritonserver/repoagents",
    "repository-poll-secs": "5",
    "response-cache-byte-size": "1048576",
    "reuse-grpc-port": "1",
    "reuse-http-port": "1",
    "sagemaker-port": "8081",
    "sagemaker-safe-port-range": "8000-8100",
    "sagemaker-thread-count": "4",
    "strict-model-config": "true",
    "strict-readiness": "false",
    "trace-config": "level=timestamps",
    "trace-count": "-1",
    "trace-file": "trace.json",
    "trace-level": "MAX",
    "trace-log-frequency": "0",
    "trace-rate": "1000",
    "vertex-ai-default-model": "echo",
    "vertex-ai-port": "8082",
    "vertex-ai-thread-count": "4",
}
"""Every option of Triton (2.51, and those of newer versions that are known) with a value."""


ALSO = {
    *("grpc-address", "grpc-port", "http-address", "http-port", "metrics-address", "metrics-port"),  # of the fixture
    *("grpc-root-cert", "grpc-server-cert", "grpc-server-key"),  # there are no such files
    *("model-repository", "model-store", "trace-file", "response-cache-byte-size"),
    *("allow-metrics", "log-file", "model-config-name"),
}
"""Options that the test of the whole command line writes itself, or that exclude others."""


@pytest.fixture(scope="module")
def parser() -> Parser:
    """The parser of the command line, with everything that is installed."""
    return command_parser("serve")


@pytest.fixture(scope="module")
def options() -> list[Option]:
    """Every option of `naiad serve`."""
    declared = PluginRegistry.discover().options()
    return [*declared, *triton_options({option.name for option in declared})]


@pytest.mark.parametrize("name", TRITON)
def test_an_option_of_triton_is_taken_in_both_forms(parser: Parser, options: list[Option], name: str) -> None:
    text = TRITON[name]

    glued = chosen_values(options, parser.parse_args(["serve", f"--{name}={text}", "models"]))
    apart = chosen_values(options, parser.parse_args(["serve", f"--{name}", text, "models"]))

    assert glued == apart
    assert len(glued) == 1


def test_the_table_has_every_option_that_changes_nothing() -> None:
    assert {option.name for option in WITHOUT_EFFECT} <= set(TRITON)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--model-control-mode=EXPLICIT"], "model-control-mode", "explicit"),
        (["--model-control-mode", "Poll"], "model-control-mode", "poll"),
        (["--log-format", "iso8601"], "log-format", "ISO8601"),
        (["--model-repo=x"], "model-repository", ("x",)),
        (["--strict-r", "0"], "strict-readiness", False),
        (["--allow-gpu-m=false"], "allow-gpu-metrics", False),
    ],
)
def test_values_in_capitals_and_short_names_mean_what_they_mean_to_triton(
    parser: Parser, options: list[Option], words: list[str], name: str, value: object
) -> None:
    values = chosen_values(options, parser.parse_args(["serve", *words]))

    assert values == {name: value}


def words(name: str, number: int) -> list[str]:
    """The option with its value, by turns as one word and as two."""
    return [f"--{name}={TRITON[name]}"] if number % 2 else [f"--{name}", TRITON[name]]


def test_a_command_line_with_every_option_of_triton_starts_a_server(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path / "models", "echo", ECHO)
    names = [name for name in TRITON if name not in ALSO]
    options = [word for number, name in enumerate(names) for word in words(name, number)]
    both = ["--model-repository", tmp_path / "models", f"--model-store={tmp_path / 'models'}"]

    server = serve(*both, *options, f"--trace-file={tmp_path / 'trace.json'}")
    client = triton.InferenceServerClient(server.url.removeprefix("http://"))

    assert client.is_server_live()
    assert client.is_model_ready("echo")
    warned = [match[1] for line in server.lines if (match := re.search(r"--([a-z-]+) (has no effect|is depr)", line))]
    assert sorted(warned) == sorted({*(option.name for option in WITHOUT_EFFECT), *DEPRECATED})


DEPRECATED = ("strict-model-config", "trace-count", "trace-file", "trace-level", "trace-log-frequency", "trace-rate")
