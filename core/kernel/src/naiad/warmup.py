"""The contract of warm-ups: what each new instance of a model version executes before it serves.

The hook `naiad_warmup` makes them. The distribution naiad-warmup brings the samples of `model_warmup`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from naiad.backend import Answer, Batch, Instance
from naiad.codec import BatchCodec
from naiad.server import Outcome
from naiad.types import Request
from naiad_tensors.ragged import BatchLayout


@dataclass(frozen=True, slots=True)
class VersionParts:
    """The parts of a model version with which a warm-up makes batches and reads answers. All are for any thread.

    `validate` returns the request as the model sees it and its batch size (1 without batching), or raises
    InvalidArgumentError. `read` makes one outcome a request, None for one that is answered through its sender, or
    raises ModelFailedError. `layout` is that of the batches, `codec` the batch codec of the version, where it has one.
    """

    validate: Callable[[Request], tuple[Request, int]]
    read: Callable[[Answer, Batch], Sequence[Outcome | None]]
    layout: BatchLayout | None = None
    codec: BatchCodec | None = None


@runtime_checkable
class Warmup(Protocol):
    """Warms up the instances of one model version, also those that replace dead ones. Methods are for any thread."""

    @property
    def progress(self) -> str:
        """What instances execute for it at this moment, "" while none does; the index shows it."""

    def warm_up(self, instance: Instance, name: str, parts: VersionParts) -> None:
        """Execute on a new instance of that name, on its own thread. Raise NaiadError to fail it, and with it a load.

        Several instances may warm up at the same time.
        """
