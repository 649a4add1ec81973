"""What both fuzzers share: clients on threads with seeded random numbers, and the figures of what they met."""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.torture.case import Figure
from bench.torture.server import Target

SEED = 13
_CASES, _SECONDS = 20_000, 75.0
SECONDS = float(os.environ.get("FUZZ_SECONDS", _SECONDS))
"""How long the clients of a fuzzer go on; with FUZZ_SECONDS all that time, else for 20,000 cases at most."""

CASES_OF_FUZZER = sys.maxsize if "FUZZ_SECONDS" in os.environ else _CASES
LOG_KB = int(20_000 * max(1, SECONDS / _SECONDS))
"""What the log may grow by."""


@dataclass(slots=True)
class Findings:
    """How often each result came, and a line for each that is wrong; all clients add to it."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def figures(self, target: Target, wrong_name: str, descriptors_before: int) -> Sequence[Figure]:
        """The figures of a case, once the server has had a second to free what the clients left."""
        time.sleep(1)
        return [
            Figure("cases", self.seen.total(), float("inf"), str(dict(sorted(self.seen.items())))),
            Figure(wrong_name, len(self.wrong), 0, " | ".join(self.wrong[:3])),
            Figure("tracebacks", target.log.read_bytes().count(b"Traceback"), 0),
            Figure("descriptors kept", target.descriptors() - descriptors_before, 5),
        ]


def run_clients(count: int, client: Callable[[Random, float, Findings], None]) -> Findings:
    """What `count` clients find at once; each gets its own random numbers, its end time and the findings."""
    findings, until = Findings(), time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=client, args=(Random(SEED + number), until, findings)) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return findings
