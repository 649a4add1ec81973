"""All cases, in rounds: the servers are started afresh for each."""

from ..answers import Round
from . import http_binary, http_health, http_inference, http_malformed, http_parameters, http_repository

ROUNDS = (
    Round("statistics", tuple(http_repository.statistics())),
    Round(
        "http",
        (
            *http_health.cases(),
            *http_inference.cases(),
            *http_binary.cases(),
            *http_parameters.cases(),
            *http_malformed.cases(),
        ),
    ),
    Round("repository", tuple(http_repository.repository())),
)
