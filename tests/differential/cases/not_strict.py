"""A server with a name of its own that is ready although a model is not."""

from ..answers import Case
from ..grpc_asking import grpc_case
from ..http_asking import http_case

OPTIONS = ("--id=other", "--strict-readiness=false")


def cases() -> list[Case]:
    """With `OPTIONS`."""
    return [
        http_case("not_strict/metadata", "GET", "/v2", any_value=("$.version", "$.extensions*")),
        http_case("not_strict/ready", "GET", "/v2/health/ready"),
        http_case("not_strict/load_broken", "POST", "/v2/repository/models/broken/load"),
        http_case("not_strict/ready_with_broken", "GET", "/v2/health/ready"),
        http_case("not_strict/broken_ready", "GET", "/v2/models/broken/versions/1/ready"),
        grpc_case("grpc_not_strict/ready", "ServerReady"),
        grpc_case("grpc_not_strict/check", "grpc.health.v1.Health/Check"),
    ]
