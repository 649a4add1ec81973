"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import RequestStage, StageContext
    from naiad.options import Option


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Whether requests are explained."""
    from naiad.options import Option, boolean

    return [Option("allow-explain", False, "let requests ask for their timeline", boolean)]


@hookimpl
def naiad_stages(context: "StageContext") -> "Sequence[RequestStage]":
    """The stage that follows the requests that ask for their timeline."""
    from naiad_explain.stage import ExplainStage

    return [ExplainStage(context.settings["allow-explain"])]
