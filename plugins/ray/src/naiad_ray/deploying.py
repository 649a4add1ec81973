"""Connects to a Ray cluster, starts Ray Serve with the ports of a description, and deploys its application."""

import os

import ray
from ray import serve
from ray.exceptions import GetTimeoutError, RayActorError
from ray.serve.config import HTTPOptions, ProxyLocation, gRPCOptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from naiad.errors import UnavailableError
from naiad_ray import haproxy
from naiad_ray.application import build
from naiad_ray.description import Description

SERVICE_FUNCTION = "naiad_ray.grpc_service.add_service"
_NODE_IS_LATE = "timed out during startup"
_PROXY_SECONDS = "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S"


def connect(address: str | None, *, detach: bool) -> None:
    """Connect to the cluster at `address` ("auto": the running one); None also starts one on this machine.

    Raises UnavailableError if there is none, or if one does not start in time. A cluster that this process starts ends
    with it, so `detach` needs one.
    """
    if ray.is_initialized():
        return
    try:
        ray.init(address=address or ("auto" if detach else None), logging_level="warning", log_to_driver=False)
    except ConnectionError as error:
        raise UnavailableError(
            f"there is no Ray cluster at '{address or 'auto'}': start one with ray start --head, or name its address"
        ) from error
    except Exception as error:  # Ray has no class of its own for this
        if _NODE_IS_LATE not in str(error):
            raise
        raise UnavailableError(
            "Ray did not start on this machine within the 30 seconds that it gives itself, which a busy machine may "
            "exceed: try again, or start it before with ray start --head"
        ) from error


def deploy(description: Description) -> None:
    """Deploy the application, and return when its new replicas serve.

    An application that runs serves on meanwhile, by its old replicas, and keeps them if the new ones fail.
    Raises UnavailableError if they do, or if the cluster does not have the ingress of the description.
    """
    if description.ingress == "haproxy":
        haproxy.require(description, _variable_by_node())
    _start(description)
    application = build(description)
    try:
        serve.run(application, name=description.name, route_prefix="/")
    except RuntimeError as error:
        raise UnavailableError(f"application '{description.name}' did not start: {_reasons(description)}") from error


def _start(description: Description) -> None:
    """Start Ray Serve where it does not run."""
    try:
        serve.start(
            proxy_location=ProxyLocation.EveryNode,
            http_options=HTTPOptions(host=description.http.host, port=description.http.port),
            grpc_options=gRPCOptions(port=description.grpc.port, grpc_servicer_functions=[SERVICE_FUNCTION])
            if description.grpc
            else None,
        )
    except (RayActorError, GetTimeoutError) as error:
        raise UnavailableError(
            "Ray Serve's proxy on this node did not start in time: its port may be in use, or the machine is too busy; "
            f"{_PROXY_SECONDS}, on every node, is how many seconds it has (default 5)"
        ) from error


def _variable_by_node() -> dict[str, str]:
    """The value of the variable for HAProxy on each node that lives, by the node's address and name."""
    read = ray.remote(num_cpus=0)(_variable)
    values = {
        f"{node['NodeManagerAddress']} ({node['NodeName']})": read.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in ray.nodes()
        if node["Alive"]
    }
    return dict(zip(values, ray.get(list(values.values())), strict=True))


def _variable() -> str:
    return os.environ.get(haproxy.VARIABLE, "")


def _reasons(description: Description) -> str:
    """What Ray Serve says of each deployment that is not healthy."""
    application = serve.status().applications[description.name]
    unhealthy = {name: each for name, each in application.deployments.items() if each.status != "HEALTHY"}
    return "\n".join(f"{name}: {each.message.strip()}" for name, each in unhealthy.items()) or application.message


def shut_down(name: str) -> None:
    """Remove an application, and return when its replicas have answered what they had and ended.

    With the last application Ray Serve itself ends, and its proxies with it.
    """
    serve.delete(name)
    if not serve.status().applications:
        serve.shutdown()
