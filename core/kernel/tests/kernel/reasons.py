"""Asking a server why a model does not serve, while the one beside it does."""

import pytest

from naiad import Server
from naiad.errors import ModelNotReadyError
from naiad.reports import IndexEntry
from naiad_testing.in_loop import request


async def reason_of(server: Server, name: str = "broken") -> str:
    """Why that model is UNAVAILABLE, while the good model beside it serves."""
    index = {entry.name: entry for entry in server.index()}
    response = await server.infer(request("good", 1))
    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert index["good"] == IndexEntry("good", 1, "READY")
    assert index[name].state == "UNAVAILABLE"
    with pytest.raises(ModelNotReadyError) as caught:
        await server.infer(request(name, 1))
    assert index[name].reason in str(caught.value)
    ready = server.ready()
    assert not ready.ready
    assert index[name].reason in ready.reasons[0]
    return index[name].reason
