"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.options import Option
    from naiad.repositories import RepositoryScheme


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The folder of the cache of downloaded models, and its size."""
    from naiad_store.scheme import OPTIONS

    return OPTIONS


@hookimpl
def naiad_repositories() -> "Sequence[RepositoryScheme]":
    """Repositories in S3, Google Cloud Storage, Azure and the Hugging Face Hub."""
    from naiad_store.scheme import StoreScheme

    return [StoreScheme("s3"), StoreScheme("gs"), StoreScheme("as"), StoreScheme("hf")]
