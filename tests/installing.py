"""Installs with pip for the Makefile, and shows what happens: the size before, each package, the size and time after.

`python -m tests.installing TITLE -- ARGUMENT...` runs `pip install` with these arguments.
`python -m tests.installing --tests-of MEMBER...` installs what the tests of these members need and is not there.

Runs with the standard library alone, in an environment that is still empty.
"""

import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, distribution

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--constraint", "constraints.txt"]
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
    "frontends/grpc": ("grpcio-health-checking", "grpcio-reflection", "h2"),
    "frontends/metrics": ("prometheus_client",),
    "plugins/caffe2": ("onnx", "onnxruntime", "torch"),
    "plugins/onnx": ("onnx", "onnxruntime"),
    "plugins/openvino": ("onnx", "openvino"),
    "plugins/repository-agents": ("model-signing",),
    "plugins/store": ("moto[s3,server]",),
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
    "onnx": 9,
    "onnxruntime": 24,
    "openvino": 60,
    "tensorflow-cpu": 300,
    "tensorrt_lean_cu12_libs": 50,
    "tensorrt_rtx_cu12_libs": 90,
    "torch": 250,
    "tritonclient": 20,
}
"""About how much a package and those that it needs are to download; others are 2."""

_DOWNLOAD = re.compile(r"^\s*Downloading (\S+) \(([\d.]+) ([kMG]?B)\)")
_STEP = re.compile(r"^(Collecting|Obtaining|Installing collected packages|  Building|  Preparing)")
_UNITS = {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


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
    """Run pip, show each step in one line of a terminal, and return its exit status; its last lines if it fails."""
    began = time.monotonic()
    print(f"{title} ...", flush=True)
    fetched = 0.0
    lines: deque[str] = deque(maxlen=40)
    with subprocess.Popen([*PIP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            lines.append(line)
            download = _DOWNLOAD.match(line)
            if download:
                fetched += float(download[2]) * _UNITS[download[3]]
            if sys.stdout.isatty() and (download or _STEP.match(line)):
                print(f"\r\033[K  {fetched:.0f} MB, {line.strip()[:70]}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    if pip.returncode:
        print("".join(lines), file=sys.stderr)
        return pip.returncode
    print(f"  done: {fetched:.0f} MB fetched, {time.monotonic() - began:.0f} s", flush=True)
    return 0


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
