"""What both fuzzers share: clients on threads with seeded random numbers, and the figures of what they met."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.torture.case import Figure
from bench.torture.server import Target

CASES_OF_FUZZER = 20_000
SEED = 13
_MOST_SECONDS = 75.0


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
    findings, until = Findings(), time.monotonic() + _MOST_SECONDS
    threads = [
        threading.Thread(target=client, args=(Random(SEED + number), until, findings)) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return findings
