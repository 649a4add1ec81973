"""The rate limiter of a whole server: executions wait for what others hold, and what cannot ever run ends the start."""

from pathlib import Path

from .asking import ONE
from .conftest import Start
from .gates import Gate
from .running import post, until
from .test_metrics import Scraped, scrape

SHARED = 'instance_group [ {{ kind: KIND_CPU count: {} rate_limiter {{ resources [ {{ name: "R" count: {} }} ] }} }} ]'


def units(scraped: Scraped, name: str) -> float:
    labels = frozenset({"resource": "R", "device": "cpu"}.items())
    return scraped[f"naiad_rate_limit_{name}", labels]


def test_executions_wait_for_what_those_of_other_models_hold(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "a", SHARED.format(2, 1))
    gate.write_model(repository, "b", SHARED.format(1, 2))
    server = start("--rate-limit=execution_count", "--rate-limit-resource=R:2")

    with server.connections(3) as (first, second, third):
        for wire in (first, second):
            wire.send(post("/v2/models/a/infer", ONE))
        gate.wait_until_entered(2)
        third.send(post("/v2/models/b/infer", ONE))
        until(lambda: units(scrape(server), "waiting") == 1)
        meanwhile = scrape(server)
        entered = gate.entered
        gate.open()
        answers = [wire.answer() for wire in (first, second, third)]

    assert [units(meanwhile, name) for name in ("capacity", "in_use", "waiting")] == [2, 2, 1]
    assert entered == 2
    assert [answer and answer.status for answer in answers] == [200] * 3
    assert units(scrape(server), "in_use") == 0
    server.stop()
