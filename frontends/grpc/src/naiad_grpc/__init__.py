"""Hook implementations of the gRPC frontend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.frontend import Frontend
    from naiad.options import Option


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of this frontend."""
    from naiad_grpc.options import OPTIONS

    return OPTIONS


@hookimpl
def naiad_frontends() -> "Sequence[Frontend]":
    """The gRPC frontend."""
    from naiad_grpc.frontend import GrpcFrontend

    return [GrpcFrontend()]
