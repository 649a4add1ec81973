"""The interface between the frontend suite and a wire protocol: what an adapter does for a frontend."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from naiad_testing.frontends.calls import Answer, Call


@dataclass(frozen=True)
class Credentials:
    """The files with which a client connects over TLS: whom it trusts, and its own certificate, if it has one."""

    root: Path
    cert: Path | None = None
    key: Path | None = None


class Pending(Protocol):
    """A request that is under way."""

    def result(self) -> Answer:
        """Wait for the answer. Raises RefusedError."""
        ...

    def cancel(self) -> None:
        """Take the request back."""
        ...


class Stream(Protocol):
    """The responses to a request of a model that may send many; it reads no further than it is iterated."""

    def __iter__(self) -> Generator[Answer, None, None]:
        """The responses with outputs, in order. Raises RefusedError for an error."""
        ...

    def close(self) -> None:
        """Leave, whether or not all has come."""
        ...


class FrontendAdapter(ABC):
    """A client of one frontend over its own wire. Its methods raise RefusedError for an error that the wire carries.

    Reports come as plain values: names are those of the protocol, numbers are integers, and what the protocol leaves
    out may be missing. Trace settings are lists of strings. A frontend is at `address`, which is as the frontend names
    it: its port, or its target.
    """

    frontend: ClassVar[str]
    """The frontend's name, with which its options begin."""
    restriction_option: ClassVar[str]
    restriction_prefix: ClassVar[str] = ""
    """What stands in front of the header that opens a restricted API."""
    statuses: ClassVar[Mapping[str, str]]
    """The status of each error of `naiad.errors`, by the error's name."""

    @classmethod
    @abstractmethod
    def address_of(cls, frontend: Any) -> str:
        """Where the frontend listens, as the constructor of the adapter takes it."""

    @abstractmethod
    def __init__(self, address: str, credentials: Credentials | None = None) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    def infer(self, call: Call) -> Answer:
        """The answer to a request."""

    @abstractmethod
    def begin(self, call: Call) -> Pending:
        """Send a request and return."""

    @abstractmethod
    def stream(self, call: Call) -> Stream:
        """Send a request to a model that may send many responses."""

    @abstractmethod
    def live(self, headers: Mapping[str, str] | None = None) -> bool:
        """Whether the server says that it is live."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether the server says that it is ready."""

    @abstractmethod
    def model_ready(self, name: str, version: str = "") -> bool:
        """Whether the server says that the model is ready; False for a model that it does not know."""

    @abstractmethod
    def server_metadata(self, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The server's name, version and extensions."""

    @abstractmethod
    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's versions, platform and tensors."""

    @abstractmethod
    def model_config(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's configuration."""

    @abstractmethod
    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        """The counters of one model, or of all."""

    @abstractmethod
    def index(self) -> list[dict[str, str]]:
        """The models of the repository; empty members are missing."""

    @abstractmethod
    def load(self, name: str, config: str | None = None, files: Mapping[str, bytes] | None = None) -> None:
        """Load a model."""

    @abstractmethod
    def unload(self, name: str, dependents: bool = False) -> None:
        """Unload a model."""

    @abstractmethod
    def trace_settings(self, model: str = "") -> dict[str, list[str]]:
        """The trace settings, of all models or of one."""

    @abstractmethod
    def set_trace(self, changes: Mapping[str, str | Sequence[str] | None], model: str = "") -> dict[str, list[str]]:
        """Change trace settings; the settings after that."""

    @abstractmethod
    def log_settings(self) -> dict[str, Any]:
        """The log settings."""

    @abstractmethod
    def set_log(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change log settings; the settings after that."""

    @abstractmethod
    def register_system(self, name: str, key: str, byte_size: int, offset: int = 0) -> None:
        """Register a region of system shared memory."""

    @abstractmethod
    def register_cuda(self, name: str, handle: bytes, device: int, byte_size: int) -> None:
        """Register a region of CUDA shared memory by its handle in base64."""

    @abstractmethod
    def unregister(self, kind: str, name: str = "") -> None:
        """Unregister one region of a kind (`system`, `cuda`), or all."""

    @abstractmethod
    def regions(self, kind: str, name: str = "") -> dict[str, dict[str, Any]]:
        """The regions of a kind by name, or the one of that name."""
