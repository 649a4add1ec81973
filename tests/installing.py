"""Installs for the Makefile, and shows what happens: the size before, each package, the size and time after.

`python -m tests.installing TITLE -- ARGUMENT...` runs `uv pip install` with these arguments, or `pip install` where
uv is not in the environment or fails: pip takes a multiple of the time for the members.
`python -m tests.installing --tests-of MEMBER...` installs what the tests of these members need and is not there.

Runs with the standard library alone, in an environment that is still empty.
"""

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

CONSTRAINED = ("--constraint", "constraints.txt")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
UV = Path(sys.executable).with_name("uv")
LIKE_PIP = ("--index-strategy", "unsafe-best-match")
"""pip takes a version from whichever index has it."""
OF_EVERY_MEMBER = (
    "hypothesis",
    "ml_dtypes",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "tritonclient[grpc,http]",
    "trustme",
)
"""What the tests of most members need."""

OF_MEMBERS = {
    "core/cli": ("ruff",),
    "frontends/grpc": ("grpcio-health-checking", "grpcio-reflection", "grpcio-tools", "h2"),
    "frontends/http": ("jsonschema",),
    "frontends/metrics": ("prometheus_client",),
    "plugins/caffe2": ("onnx", "onnxruntime", "torch"),
    "plugins/custom": ("mypy",),
    "plugins/onnx": ("onnx", "onnxruntime"),
    "plugins/openvino": ("onnx", "openvino"),
    "plugins/process-workers": ("opentelemetry-sdk",),
    "plugins/repository-agents": ("model-signing", "pyopenssl"),
    "plugins/store": ("huggingface_hub", "moto[s3,server]"),
    "plugins/tensorflow": ("tensorflow-cpu",),
    "plugins/tensorrt": (
        "cuda-bindings",
        "onnx",
        "tensorrt_lean_cu12_bindings",
        "tensorrt_lean_cu12_libs",
        "tensorrt_rtx_cu12_bindings",
        "tensorrt_rtx_cu12_libs",
    ),
    "plugins/torch": ("torch",),
    "plugins/tracing": ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
}
"""What the tests of a member need besides."""

MEGABYTES = {
    "cuda-bindings": 10,
    "model-signing": 20,
    "moto": 30,
    "mypy": 20,
    "onnx": 9,
    "onnxruntime": 24,
    "openvino": 60,
    "ruff": 11,
    "tensorflow-cpu": 300,
    "tensorrt_lean_cu12_libs": 50,
    "tensorrt_rtx_cu12_libs": 90,
    "torch": 250,
    "tritonclient": 20,
}
"""About how much a package and those that it needs are to download; others are 2."""

_DOWNLOAD = re.compile(r"^\s*Downloading (\S+) \(([\d.]+) ?([kMG]?i?B)\)")
_STEP = re.compile(
    r"^(Collecting|Obtaining|Installing collected packages|Resolved|Prepared|Installed|\s+Building|  Prep)"
)
_UNITS = {"B": 1e-6, "kB": 1e-3, "KiB": 1e-3, "MB": 1.0, "MiB": 1.0, "GB": 1e3, "GiB": 1e3}


def needs_of(members: Iterable[str]) -> list[str]:
    """The requirements of the tests of these members."""
    needs = {*OF_EVERY_MEMBER}
    for member in members:
        needs |= {*OF_MEMBERS.get(member, ())}
    return sorted(needs)


def missing(requirements: Iterable[str]) -> list[str]:
    """Those that are not installed."""
    return [requirement for requirement in requirements if not _is_installed(_name(requirement))]


def megabytes_of(requirements: Iterable[str]) -> int:
    """About how much there is to download for these."""
    return sum(MEGABYTES.get(_name(requirement), 2) for requirement in requirements)


def install(title: str, arguments: Sequence[str]) -> int:
    """Install, show each step in one line of a terminal, and return the exit status; the last lines of a failure."""
    began = time.monotonic()
    print(f"{title} ...", flush=True)
    fetched: float | None = None
    if UV.exists():
        uv = (str(UV), "pip", "install", "--python", sys.executable, "--compile-bytecode", *LIKE_PIP)
        fetched, _ = _run((*uv, *CONSTRAINED, *arguments), indexes_of_pip())
    if fetched is None:
        fetched, last = _run((*PIP, "install", *CONSTRAINED, *arguments))
        if fetched is None:
            print(last, file=sys.stderr)
            return 1
    print(f"  done: {fetched:.0f} MB fetched, {time.monotonic() - began:.0f} s", flush=True)
    return 0


def indexes_of_pip() -> dict[str, str]:
    """The package indexes that pip is configured with, as variables for uv, which does not read pip's configuration."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    settings = dict(re.findall(r"^\S+?\.([\w-]+)='(.*)'$", listed, re.MULTILINE))
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    configured = {variable: settings[name] for name, variable in names.items() if name in settings}
    return {variable: value for variable, value in configured.items() if variable not in os.environ}


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[float | None, str]:
    """How many MB an installation has fetched, None if it failed, and its last lines."""
    fetched = 0.0
    lines: deque[str] = deque(maxlen=40)
    environment = {**os.environ, **(variables or {})}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as installer:
        for line in installer.stdout or ():
            lines.append(line)
            download = _DOWNLOAD.match(line)
            if download:
                fetched += float(download[2]) * _UNITS[download[3]]
            if sys.stdout.isatty() and (download or _STEP.match(line)):
                print(f"\r\033[K  {fetched:.0f} MB, {line.strip()[:70]}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    return (None if installer.returncode else fetched), "".join(lines)


def main(words: Sequence[str]) -> int:
    """Do what the command line says, and return the exit status."""
    if words[:1] == ["--tests-of"]:
        members = words[1:]
        requirements = missing(needs_of(members))
        if not requirements:
            return 0
        size = megabytes_of(requirements)
        title = (
            f"what the tests of {' and '.join(members)} need: {len(requirements)} packages, about {size} MB to fetch"
        )
        return install(title, requirements)
    title, _, *arguments = words
    return install(title, arguments)


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
