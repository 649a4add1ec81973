"""Variables of stateful models: saved and restored for each sequence.

OpenVINO keeps such variables in the request that executes; without these every caller would find those of the last.
"""

from typing import Any

from naiad.types import Request
from naiad_openvino.runtime import runtime


class Variables:
    """The variables of one request of OpenVINO, sequence by sequence; those without a sequence begin anew each time."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._kept: dict[int | str, list[Any]] = {}

    @staticmethod
    def of(request: Any) -> "Variables | None":
        """Those of a request, None where the model has none."""
        return Variables(request) if request.query_state() else None

    def recall(self, request: Request) -> None:
        """Put in what the sequence left, or the first values where it starts."""
        if request.sequence_start:
            self.forget(request.correlation_id)
        kept = self._kept.get(request.correlation_id) if request.correlation_id else None
        self._request.reset_state()
        for variable, tensor in zip(self._request.query_state(), kept or (), strict=False):
            variable.state = tensor

    def keep(self, request: Request) -> None:
        """Remember what the execution left, unless the sequence is over."""
        if request.sequence_end:
            self.forget(request.correlation_id)
        elif request.correlation_id:
            states = [variable.state for variable in self._request.query_state()]
            self._kept[request.correlation_id] = [_copy(state) for state in states]

    def forget(self, correlation_id: int | str) -> None:
        """Let go of what a sequence left."""
        self._kept.pop(correlation_id, None)


def _copy(state: Any) -> Any:
    """A tensor of the same type; numpy takes the bits of a BF16 tensor for float16."""
    return runtime().Tensor(state.data.copy(), list(state.shape), state.element_type)
