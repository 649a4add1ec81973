"""What a server answered, in a form that two servers can be compared in, and what a case is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GONE = "nobody listens"
"""The status where the server has died: the case before this one has killed it."""

CLOSED = "closed without an answer"
"""The status where the connection ended: the server may be about to die."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of either protocol.

    `status` is the number of HTTP, the name of a gRPC code, or words where there was no answer at all. `headers` are
    those that a client looks at. `document` is the JSON, or a message as JSON. `content` is what is not JSON: tensors.
    """

    status: str
    headers: Mapping[str, str] = field(default_factory=dict)
    document: Any = None
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a server listens, and the folder where it may write."""

    http: int
    grpc: int
    metrics: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to ask both servers; `any_value` are patterns of the paths whose values differ from run to run."""

    key: str
    ask: Callable[[Ports], Answer]
    any_value: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """Cases that are asked in this order of two fresh servers; `options` are given to both, `own` to ours alone.

    `{folder}` in an option is a folder of the server's own.
    Where `explicit` is False, models are not loaded by request, and all of them at the start.
    """

    name: str
    cases: tuple[Case, ...]
    options: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    explicit: bool = True
