"""`naiad ray`: checks a description, and brings its application up on a Ray cluster."""

import argparse
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from naiad.errors import NotFoundError
from naiad_ray.haproxy import prepare
from naiad_ray.reading import read_description

if TYPE_CHECKING:
    from naiad_ray.description import Description

_PATH = "a naiad-ray.yaml, a folder that has one or is a repository of models, or the URL of such a repository"


def add_parser(subparsers: Any) -> None:
    """Add the command `ray` and its own commands."""
    parser = subparsers.add_parser("ray", description="Naiad on Ray Serve: several replicas, on several machines.")
    commands = parser.add_subparsers(dest="ray_command", metavar="COMMAND", required=True)
    check = commands.add_parser(
        "check",
        help="list every mistake of a naiad-ray.yaml",
        description="Every mistake of a naiad-ray.yaml, and what it leads to.",
    )
    check.add_argument("path", metavar="FILE|DIR|URL", help=_PATH)
    check.set_defaults(run=run_check)
    up = commands.add_parser(
        "up",
        help="bring an application up, or change the one that runs",
        description="Bring an application up, or change the one that runs: a changed file, option or repository "
        "replaces its replicas without failing a request.",
    )
    up.add_argument("path", metavar="FILE|DIR|URL", help=_PATH)
    up.add_argument("--address", help="the cluster (auto: the running one; default: that, else a new one here)")
    up.add_argument("--detach", action="store_true", help="return when the application runs; needs a running cluster")
    up.set_defaults(run=run_up)
    down = commands.add_parser(
        "down",
        help="remove an application from the running cluster",
        description="Remove an application from the running cluster.",
    )
    down.add_argument("name", nargs="?", default="naiad", metavar="NAME", help="the application (default: naiad)")
    down.add_argument("--address", default="auto", help="the cluster (default: the running one)")
    down.set_defaults(run=run_down)


def run_check(arguments: argparse.Namespace) -> int:
    """Print the groups with their models; the exit status is 1 where a model cannot be read."""
    from naiad_ray.capacity import configurations
    from naiad_ray.checking import lines_of

    description = read_description(arguments.path)
    models = {group.name: configurations(description, group) for group in description.groups}
    lines, broken = lines_of(description, models)
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if broken else 0


def run_up(arguments: argparse.Namespace) -> int:
    """Start Ray Serve where it does not run, deploy the application, and wait for a signal."""
    description = read_description(arguments.path)
    prepare(description)
    _require_ray()
    os.environ.setdefault("RAY_SERVE_LOG_TO_STDERR", "0")
    from naiad_ray.deploying import connect, deploy

    connect(arguments.address, detach=arguments.detach)
    deploy(description)
    sys.stdout.write("".join(f"{line}\n" for line in _addresses(description)))
    sys.stdout.flush()
    if not arguments.detach:
        _wait()
        from naiad_ray.deploying import shut_down

        shut_down(description.name)
    return 0


def run_down(arguments: argparse.Namespace) -> int:
    """Remove the application; requests in flight are answered."""
    _require_ray()
    from naiad_ray.deploying import connect, shut_down

    connect(arguments.address, detach=True)
    shut_down(arguments.name)
    return 0


def _addresses(description: "Description") -> list[str]:
    addresses = [f"application '{description.name}' runs", f"http at port {description.http.port}"]
    return [*addresses, f"grpc at port {description.grpc.port}"] if description.grpc else addresses


def _require_ray() -> None:
    try:
        import ray.serve  # noqa: F401
    except ImportError as error:
        raise NotFoundError("Ray Serve is not installed: pip install 'naiad-ray[serve]'") from error


def _wait() -> None:
    """Wait for SIGINT or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
