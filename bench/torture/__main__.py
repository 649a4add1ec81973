"""Runs the hostile cases and the fuzzers, prints a line for each, and fails when a bound was not held."""

import argparse
import sys
import time
from pathlib import Path

from bench.torture import (
    fuzz_grpc,
    fuzz_http,
    grpc_cases,
    http_cases,
    http_loads,
    load_cases,
    plugin_cases,
    process_cases,
)
from bench.torture.report import header, line
from bench.torture.running import run_case

_MODULES = (http_cases, http_loads, grpc_cases, load_cases, plugin_cases, process_cases, fuzz_http, fuzz_grpc)


def main() -> int:
    arguments = _arguments()
    cases = [case for module in _MODULES for case in module.CASES]
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return 0
    chosen = [case for case in cases if not arguments.only or any(name in case.name for name in arguments.only)]
    started = time.monotonic()
    print(header(), flush=True)
    failed = []
    for case in chosen:
        result = run_case(arguments.naiad, case)
        print(line(case, result), flush=True)
        if not result.holds:
            failed.append(case.name)
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} cases held in {time.monotonic() - started:.0f} s", end="")
    print(f"; FAILED: {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.torture", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="cases whose name contains NAME")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument(
        "--naiad",
        type=Path,
        default=Path(sys.executable).with_name("naiad"),
        help="the program to start (default: that of this environment)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
