"""The protocol of a registered region, of host or device memory."""

from typing import Protocol

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_kit.buffers import Buffer
from naiad_shared_memory.mapping import Loan


class Region(Protocol):
    """A region that a request holds; it stays usable for it, also when it is unregistered meanwhile.

    Its memory belongs to the client, which may change, shorten or remove it at any time: that is an error at worst.
    """

    name: str

    def check(self, offset: int, byte_size: int) -> None:
        """Raise InvalidArgumentError unless these bytes lie within the region."""
        ...

    def read(self, offset: int, byte_size: int) -> np.ndarray:
        """A private copy of these bytes: uint8, one dimension.

        Raises InvalidArgumentError when they do not lie within the region, or the client has taken them away.
        """
        ...

    def lend(self, offset: int, byte_size: int) -> Loan | None:
        """These bytes, which lie within the region, where they are, for a model that is about to execute.

        None where they have to be read.
        """
        ...

    def shrunk(self) -> InvalidArgumentError:
        """What to say when lent bytes were taken away."""
        ...

    def write(self, offset: int, byte_size: int, content: Buffer, output: str) -> None:
        """Write the bytes to the `byte_size` bytes from `offset` on.

        Raises InvalidArgumentError, with the name of the `output`, when they do not fit, or the client has taken the
        memory away.
        """
        ...
