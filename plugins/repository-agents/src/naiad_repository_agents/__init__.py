"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.options import Option
    from naiad.repositories import RepositoryAgent


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The keys that signatures are verified with, and whether every model needs a signature."""
    from naiad_repository_agents.signature import OPTIONS

    return OPTIONS


@hookimpl
def naiad_repository_agents() -> "Sequence[RepositoryAgent]":
    """The agents `checksum` and `signature`."""
    from naiad_repository_agents.checksum import ChecksumAgent
    from naiad_repository_agents.signature import SignatureAgent

    return [ChecksumAgent(), SignatureAgent()]
