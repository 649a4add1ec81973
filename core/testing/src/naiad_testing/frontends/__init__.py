"""The published suite of frontends: one table of behaviours, driven through an adapter for each wire protocol."""

from naiad_testing.frontends.access import ACCESS
from naiad_testing.frontends.adapter import Credentials, FrontendAdapter, Pending, Stream
from naiad_testing.frontends.calls import Answer, Call, Input, Location, Output, RefusedError
from naiad_testing.frontends.inference import INFERENCE
from naiad_testing.frontends.refusals import REFUSALS
from naiad_testing.frontends.reports import REPORTS
from naiad_testing.frontends.repository import REPOSITORY
from naiad_testing.frontends.settings import SETTINGS
from naiad_testing.frontends.shared_memory import SHARED_MEMORY
from naiad_testing.frontends.stage import Served, Stage, SuiteBackend
from naiad_testing.frontends.streams import STREAMS
from naiad_testing.frontends.table import Behaviour, Table

__all__ = [
    "UNARY",
    "Answer",
    "Behaviour",
    "Call",
    "Credentials",
    "FrontendAdapter",
    "Input",
    "Location",
    "Output",
    "Pending",
    "RefusedError",
    "Served",
    "Stage",
    "Stream",
    "SuiteBackend",
    "Table",
    "behaviours",
]


UNARY = (INFERENCE, REFUSALS, REPORTS, REPOSITORY, SETTINGS, SHARED_MEMORY)
"""The tables whose behaviours take one answer for one request."""


def behaviours(*tables: Table) -> list[Behaviour]:
    """The behaviours of these tables, of all without any, to parametrise a test of a frontend."""
    return [behaviour for table in tables or (*UNARY, STREAMS, ACCESS) for behaviour in table]
