"""The metrics of instances that die: they are there all the while, and say in which state each is."""

from pathlib import Path

import pytest

from naiad import Server
from naiad.errors import WorkerDiedError
from naiad_testing.in_loop import request
from naiad_testing.loops import until
from naiad_testing.metric_values import ONE, values_of, with_reason

from .deaths import DEADLY, gated, states
from .metered import running


def state_of(server: Server) -> str:
    """The state that the metrics say the one instance is in."""
    values = values_of(server)["naiad_instance_state"]
    (state,) = (dict(labels)["state"] for labels, value in values.items() if value)
    assert len(values) == 3
    return state


async def test_an_instance_is_notified_as_dead_until_it_is_replaced(tmp_path: Path) -> None:
    backend, gate = gated(tmp_path)

    async with running(tmp_path, backend) as server:
        before = state_of(server)
        gate.open = False
        with pytest.raises(WorkerDiedError):
            await server.infer(request("m", DEADLY))
        meanwhile, metrics = state_of(server), values_of(server)
        gate.allow()
        await until(lambda: states(server) == ["READY"])
        after = state_of(server)

    assert (before, meanwhile, after) == ("READY", "DEAD", "READY")
    assert metrics["nv_inference_request_failure"][with_reason("BACKEND")] == 1
    assert metrics["naiad_requests_in_flight"][ONE] == 0
    assert metrics["naiad_instance_busy_seconds"][ONE | {("instance", "m_0")}] == 0
