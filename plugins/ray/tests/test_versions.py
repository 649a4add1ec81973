"""Versions of deployments: with a tested release of Ray they are ours, with another one Ray Serve's."""

from collections.abc import Callable
from typing import Any

import pytest

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray warns of what these tests are not about


class Desk:
    """A deployed class."""


@pytest.fixture
def deployment() -> Any:
    from ray import serve

    return serve.deployment(Desk).options(name="desk")


@pytest.fixture
def versioned(deployment: Any) -> Callable[[int], Any]:
    """The deployment with that part."""
    from naiad_ray import versions

    return lambda part: versions.versioned(deployment, "desk", part)


def test_the_installed_ray_is_a_tested_release(deployment: Any) -> None:
    from naiad_ray.versions import TESTED_VERSIONS

    assert ray.__version__ in TESTED_VERSIONS


def test_equal_parts_have_one_version_and_others_another(versioned: Callable[[int], Any]) -> None:
    first, same, other = (versioned(part).version for part in (1, 1, 2))

    assert first == same != other


def test_a_release_that_is_not_tested_leaves_the_version_to_ray_serve(
    deployment: Any, versioned: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "__version__", "2.99.0")

    assert versioned(1) is deployment
