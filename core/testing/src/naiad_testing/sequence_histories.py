"""Random histories of sequences: interleaved, interrupted, restarted, cancelled by callers, with crashes."""

import random
from collections.abc import Iterator

from naiad_testing.history import Arrival, Crash, SequenceHistory

_GAPS = (0.0, 0.0, 0.0005, 0.002, 0.004, 0.015)
_LULL = 0.3


def random_sequence_histories(
    *,
    count: int = 40,
    length: int = 60,
    instances: int = 2,
    seed: int = 0,
    text_ids: bool = False,
    streams: bool = False,
) -> Iterator[SequenceHistory]:
    """Histories of a few sequences at a time under few ids, so that ids are used again and slots are short.

    Most sequences end as they should. Some never end, some go on after their end or start anew in the middle; some
    requests have another shape or a timeout, or lose their caller; instances die; and there are bursts and lulls. With
    `streams` some responses come long after their batch.
    """
    chance = random.Random(seed)  # noqa: S311 - test histories, no secrets
    for _ in range(count):
        ids: list[int | str] = [f"s{number}" if text_ids else number for number in range(1, chance.randint(2, 12))]
        lively = chance.random() < 0.5
        now, arrivals = 0.0, []
        open_ids: set[int | str] = set()
        for _ in range(length):
            now += _LULL if chance.random() < 0.02 else chance.choice(_GAPS)
            name = chance.choice(ids)
            start = (name not in open_ids and chance.random() < 0.97) or chance.random() < 0.03
            end = chance.random() < (0.4 if lively else 0.15)
            (open_ids.discard if end else open_ids.add)(name)
            arrivals.append(
                Arrival(
                    time=now,
                    shape_key=chance.choice((None, None, None, None, "other")),
                    timeout=chance.choice((0.0, 0.0, 0.0, 0.01, 0.05)),
                    leaves=now + chance.choice((0.0, 0.004, 0.02)) if chance.random() < 0.05 else None,
                    sequence_id=name,
                    sequence_start=start,
                    sequence_end=end,
                    streams=chance.choice((0.0, 0.0, 0.003, 0.08)) if streams else 0.0,
                )
            )
        crashes = [
            Crash(chance.uniform(0.0, now), chance.randrange(instances), chance.choice((0.0, 0.01, 0.2)))
            for _ in range(chance.choice((0, 0, 1, 3)))
        ]
        yield SequenceHistory(tuple(arrivals), tuple(crashes))


def random_iterative_histories(
    *, count: int = 40, length: int = 40, instances: int = 2, seed: int = 0
) -> Iterator[SequenceHistory]:
    """Histories of requests that the model asks to see again, up to seven times; some callers leave, instances die."""
    chance = random.Random(seed)  # noqa: S311 - test histories, no secrets
    for _ in range(count):
        now, arrivals = 0.0, []
        for _ in range(length):
            now += chance.choice(_GAPS)
            leaves = now + chance.choice((0.0, 0.01, 0.03)) if chance.random() < 0.1 else None
            arrivals.append(Arrival(now, leaves=leaves, returns=chance.choice((0, 0, 1, 2, 7))))
        crashes = [
            Crash(chance.uniform(0.0, now), chance.randrange(instances), chance.choice((0.0, 0.01)))
            for _ in range(chance.choice((0, 0, 1)))
        ]
        yield SequenceHistory(tuple(arrivals), tuple(crashes))
