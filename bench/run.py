"""The benchmark: measures Naiad and, where it is set up, the peer side by side, and keeps the tables in RESULTS.md."""

import argparse
import datetime
import os
import platform
import shlex
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cases import CASES
from cases.case import Case
from load import LoadError, perf_analyzer
from report import refresh, table
from rounds import MODELS, Run
from servers import PROJECT, Naiad, Peer, find_peer
from summary import refresh_summaries

RESULTS = PROJECT / "bench" / "RESULTS.md"
_DISTRIBUTIONS = ("naiad", "numpy", "uvicorn", "uvloop", "httptools", "orjson", "onnxruntime")


def main() -> int:
    arguments = _arguments()
    triton, why = find_peer()
    peer = _reference_server(arguments, triton)
    if peer is None:
        print(f"Naiad alone is measured: {'--no-peer was given' if arguments.no_peer else why}.", file=sys.stderr)
    quick = arguments.quick
    load = perf_analyzer(triton, quick)
    run = Run(rounds=arguments.rounds or (1 if quick else 3), quick=quick, peer=peer, perf_analyzer=load)
    facts = machine()
    print(facts, file=sys.stderr)
    failed = [name for name in arguments.cases if not _measured(CASES[name], run, facts, arguments.save)]
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _reference_server(arguments: argparse.Namespace, triton: Peer | None) -> Naiad | Peer | None:
    if arguments.against is not None:
        return Naiad("Earlier", arguments.against)
    return None if arguments.no_peer else triton


def machine() -> str:
    """The machine and the versions that a number depends on."""
    installed = {name: _version(name) for name in _DISTRIBUTIONS}
    versions = ", ".join(f"{name} {number}" for name, number in installed.items() if number)
    cores, memory = os.cpu_count(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{_processor()}, {cores} cores, {memory:.0f} GB; {_python()}, {versions}"


def _python() -> str:
    """The interpreter's version, and how it was built: profile-guided optimisation is worth a tenth and more.

    Distributions build with it and do not say so in the configuration.
    """
    build = ""
    if sysconfig.get_config_var("BINDIR") == "/usr/bin":
        build = f" of {platform.freedesktop_os_release()['NAME']}"
    elif "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        build = " (built without profile-guided optimisation)"
    return f"Python {platform.python_version()}{build}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ", ".join(CASES)
    parser.add_argument("--cases", type=_cases, default=list(CASES), help=f"comma-separated, of {names} (default: all)")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each server (default: 3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="short measurements, to see that everything works")
    parser.add_argument("--no-peer", action="store_true", help="measure Naiad alone")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="NAIAD",
        help="compare with the command `naiad` of another checkout's environment in place of the peer",
    )
    parser.add_argument(
        "--save",
        action=argparse.BooleanOptionalAction,
        help="write the tables to RESULTS.md (default: unless --quick, --no-peer or --against)",
    )
    arguments = parser.parse_args()
    if arguments.save is None:
        arguments.save = not (arguments.quick or arguments.no_peer or arguments.against)
    return arguments


def _cases(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in CASES:
            raise argparse.ArgumentTypeError(f"there is no case '{name}'; the cases are {', '.join(CASES)}")
    return names


def _measured(case: Case, run: Run, facts: str, save: bool) -> bool:
    """Measure a case, print its table and keep it; whether that went well."""
    busy = os.getloadavg()[0]
    print(f"\n## {case.title}\n", flush=True)
    try:
        rows = case.measure(run)
    except LoadError as error:
        print(f"not measured: {error}")
        return False
    message = table(rows, _reference(case, run.peer))
    print(message, flush=True)
    if save and run.peer is None and case.reference == "Triton":
        print("not saved: there is no peer to compare with")
    elif save:
        today = datetime.datetime.now(datetime.UTC).date()
        how = f"`{shlex.join(['python', 'bench/run.py', *sys.argv[1:]])}`"
        when = f"{today}, {run.rounds} rounds, load average {busy:.2f} before. {facts}."
        refresh(RESULTS, case.name, f"## {case.title}\n\n{case.text}\n\n{message}\n\n{how}; {when}")
        refresh_summaries()
    return True


def _reference(case: Case, peer: Naiad | Peer | None) -> str:
    if isinstance(peer, Naiad):
        return peer.name
    if case.reference != "Triton" or peer is None:
        return case.reference
    with peer.serve(MODELS) as running:
        return f"{case.reference} {running.get('/v2')['version']}"


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    raise SystemExit(main())
