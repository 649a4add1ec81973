"""Connects to a Ray cluster, starts Ray Serve with the ports of a description, and deploys its application."""

import ray
from ray import serve
from ray.serve.config import HTTPOptions, ProxyLocation, gRPCOptions

from naiad.errors import UnavailableError
from naiad_ray.application import build
from naiad_ray.description import Description

SERVICE_FUNCTION = "naiad_ray.grpc_service.add_service"


def connect(address: str | None, *, detach: bool) -> None:
    """Connect to the cluster at `address` ("auto": the running one); None also starts one on this machine.

    Raises UnavailableError if there is none. A cluster that this process starts ends with it, so `detach` needs one.
    """
    if ray.is_initialized():
        return
    try:
        ray.init(address=address or ("auto" if detach else None), logging_level="warning", log_to_driver=False)
    except ConnectionError as error:
        raise UnavailableError(
            f"there is no Ray cluster at '{address or 'auto'}': start one with ray start --head, or name its address"
        ) from error


def deploy(description: Description) -> None:
    """Deploy the application, and return when its new replicas serve. Raises UnavailableError if they do not start.

    An application that runs serves on meanwhile, by its old replicas, and keeps them if the new ones fail.
    """
    serve.start(
        proxy_location=ProxyLocation.EveryNode,
        http_options=HTTPOptions(host=description.http.host, port=description.http.port),
        grpc_options=gRPCOptions(port=description.grpc.port, grpc_servicer_functions=[SERVICE_FUNCTION])
        if description.grpc
        else None,
    )
    application = build(description)
    try:
        serve.run(application, name=description.name, route_prefix="/")
    except RuntimeError as error:
        raise UnavailableError(f"application '{description.name}' did not start: {error}") from error


def shut_down(name: str) -> None:
    """Remove an application, and return when its replicas have answered what they had and ended."""
    serve.delete(name)
