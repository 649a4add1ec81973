"""The contract of warm-ups, which naiad-warmup implements: what each new instance executes before it serves."""

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
    InvalidArgumentError. `read` makes one outcome per request, None for one that is answered through its sender, or
    raises ModelFailedError. `layout` is that of the batches, `codec` the version's, where it has one.
    """

    validate: Callable[[Request], tuple[Request, int]]
    read: Callable[[Answer, Batch], Sequence[Outcome | None]]
    layout: BatchLayout | None = None
    codec: BatchCodec | None = None


@runtime_checkable
class Warmup(Protocol):
    """Warms up the instances of one model version, also those that replace dead ones; several at the same time."""

    @property
    def progress(self) -> str:
        """What instances execute for it at this moment, "" while none does; the index shows it. For any thread."""

    def warm_up(self, instance: Instance, name: str, parts: VersionParts) -> None:
        """Execute on a new instance of that name, on its thread. Raise NaiadError to fail it, and with it a load."""
