"""Requests and answers of the frontend suite, the same for every wire protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from naiad_tensors.tensors import Tensor


class RefusedError(Exception):
    """An error that came over the wire; `status` is written as the protocol writes it (`404`, `NOT_FOUND`)."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Location:
    """A location in a region of shared memory."""

    region: str
    byte_size: int
    offset: int = 0


@dataclass(frozen=True)
class Input:
    """An input tensor: an array, or a location in shared memory. The shape of an array is its own where it is None."""

    name: str
    array: np.ndarray | None = None
    datatype: str = ""
    shape: tuple[int, ...] | None = None
    location: Location | None = None

    @property
    def wire_datatype(self) -> str:
        """The datatype, by default that of the array."""
        return self.datatype or Tensor.of(self.name, self.array).datatype

    @property
    def wire_shape(self) -> list[int]:
        """The shape, by default that of the array."""
        if self.shape is not None:
            return list(self.shape)
        return [] if self.array is None else list(self.array.shape)


@dataclass(frozen=True)
class Output:
    """A requested output, as its best `classes`, or written to a location in shared memory."""

    name: str
    classes: int = 0
    location: Location | None = None


@dataclass(frozen=True)
class Call:
    """An inference request. `limit` is how many seconds the client waits for the answer."""

    model: str
    inputs: Sequence[Input] = ()
    outputs: Sequence[Output] = ()
    version: str = ""
    id: str = ""
    sequence_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    timeout: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    limit: float | None = None


@dataclass(frozen=True)
class Answer:
    """An inference response. Strings are bytes; an output in shared memory is None."""

    model: str
    version: str
    id: str
    outputs: Mapping[str, np.ndarray | None]
    datatypes: Mapping[str, str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
