"""All cases, in rounds: the servers are started afresh for each."""

from ..answers import Round
from . import (
    access,
    ensembles,
    grpc_health,
    grpc_inference,
    grpc_repository,
    grpc_streams,
    http_binary,
    http_generate,
    http_health,
    http_inference,
    http_malformed,
    http_parameters,
    http_repository,
    metrics,
    not_strict,
    sequences,
    settings,
    shared_memory,
    together,
    traces,
)

_HTTP = (http_health, http_inference, http_binary, http_parameters, http_malformed)
_GRPC = (grpc_health, grpc_inference, grpc_streams)

ROUNDS = (
    Round("together", tuple(together.cases())),
    Round("metrics", tuple(metrics.cases()), options=metrics.OPTIONS),
    Round("statistics", tuple(http_repository.statistics())),
    Round("http", tuple(case for page in _HTTP for case in page.cases())),
    Round("repository", tuple(http_repository.repository())),
    Round("generate", tuple(http_generate.cases())),
    Round("grpc", (*grpc_repository.statistics(), *(case for page in _GRPC for case in page.cases()))),
    Round("grpc_repository", tuple(grpc_repository.cases())),
    Round("ensembles", tuple(ensembles.cases())),
    Round("sequences", tuple(sequences.cases())),
    Round("shared_memory", tuple(shared_memory.cases()), own=("--allow-client-shm=true",)),
    Round("traces", tuple(traces.cases()), options=traces.OPTIONS),
    Round("settings", tuple(settings.cases())),
    Round("access", tuple(access.restricted()), options=access.OPTIONS),
    Round("not_strict", tuple(not_strict.cases()), options=not_strict.OPTIONS),
    Round("not_explicit", tuple(access.not_explicit()), explicit=False),
)
