"""Sends the same requests to Naiad and the peer, and prints each difference of their answers that is not accepted yet.

Run it in the project's root: `python -m tests.differential`. The peer is a command that serves a repository when it is
called as `COMMAND serve REPOSITORY`; NAIAD_PEER or --peer name it. The status is 1 when there are new differences.
"""

import argparse
import os
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

from .accepted import ACCEPTED, acceptance
from .answers import Answer, Case, Round
from .asking import answers
from .cases import ROUNDS
from .comparing import Difference, differences
from .repository import names, write_repository
from .serving import naiad, peer

LOADED = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in names()))


def main() -> int:
    arguments = _arguments()
    if not arguments.peer:
        print("There is no peer to compare with: NAIAD_PEER or --peer names its command.", file=sys.stderr)
        return 0
    results: list[Difference] = []
    calls = 0
    for each in ROUNDS:
        cases = [case for case in each.cases if fnmatchcase(case.key, arguments.only)]
        if cases and fnmatchcase(each.name, arguments.round):
            calls += len(cases)
            results += _compared(arguments.peer, each, cases, arguments.texts)
    return _report(results, calls, arguments.all, whole=(arguments.only, arguments.round) == ("*", "*"))


def _report(results: list[Difference], request: int, everything: bool, whole: bool) -> int:
    """Print what differs; the exit status. `whole` says that every case was asked, so every acceptance has its use."""
    new = [difference for difference in results if not acceptance(difference)]
    for difference in results if everything else new:
        print(f"{difference.key}\n    naiad: {difference.ours}\n    peer:  {difference.theirs}")
        if accepted := acceptance(difference):
            print(f"    accepted: {accepted}")
    for accepted in ACCEPTED if whole else ():
        if not any(accepted.covers(difference) for difference in results):
            print(f"nothing differs any more as this was accepted: {accepted}")
    print(f"{request} cases: {len(new)} new differences, {len(results) - len(new)} accepted")
    return 1 if new else 0


def _compared(script: Path, round_: Round, cases: list[Case], texts: bool) -> list[Difference]:
    with tempfile.TemporaryDirectory(prefix="naiad-differential-") as folder:
        repository = Path(folder) / "models"
        write_repository(repository)
        options = (*(LOADED if round_.explicit else ()), "--exit-on-error=false", *round_.options)
        own = (*options, *round_.own, "--allow-uploaded-code")
        ours = answers(lambda: naiad(repository, own, Path(folder) / "ours"), cases)
        theirs = answers(lambda: peer(script, repository, options, Path(folder) / "theirs"), cases)
    if texts:
        for case, first, second in zip(cases, ours, theirs, strict=True):
            _print_texts(case, first, second)
    return [
        difference
        for case, first, second in zip(cases, ours, theirs, strict=True)
        for difference in differences(case, first, second)
    ]


def _print_texts(case: Case, ours: Answer, theirs: Answer) -> None:
    recorded = [answer.document.get("error") for answer in (ours, theirs) if isinstance(answer.document, dict)]
    if any(recorded):
        print(f"{case.key}\n    naiad: {ours.status} {recorded[0]!r}\n    peer:  {theirs.status} {recorded[-1]!r}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--peer", type=Path, default=os.environ.get("NAIAD_PEER"), help="the peer command")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases whose keys match (default: all)")
    parser.add_argument("--round", default="*", metavar="PATTERN", help="rounds whose names match (default: all)")
    parser.add_argument("--all", action="store_true", help="print the accepted differences too")
    parser.add_argument("--texts", action="store_true", help="print what both say where one refuses")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
