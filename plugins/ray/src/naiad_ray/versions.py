"""Versions of deployments: an update replaces the replicas whose version has changed, and no others.

Ray Serve gives each deployment a new version with every update, and so replaces all of them. It takes another version
only as a private option, which is used with the releases of Ray that it was tested with.
"""

from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import ray

TESTED_VERSIONS = frozenset({"2.60.0"})
"""The releases of Ray whose private option is known: add one when the tests pass with it."""


def versioned(deployment: Any, *parts: object) -> Any:
    """A deployment whose replicas are kept by an update with equal parts and the same release of Naiad."""
    if ray.__version__ not in TESTED_VERSIONS:
        return deployment
    content = repr((version("naiad"), version("naiad-ray"), parts))
    return deployment.options(version=blake2b(content.encode(), digest_size=8).hexdigest(), _internal=True)
