"""What a warmup plugin hands to the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from naiad.types import Request


@dataclass(frozen=True, slots=True)
class WarmupSample:
    """Requests that go through each instance as one batch, `count` times; all inputs of the model must be there.

    A model without batching gets them one by one.
    """

    name: str
    requests: Sequence[Request]
    count: int = 1
