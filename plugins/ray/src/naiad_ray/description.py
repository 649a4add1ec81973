"""The schema of `naiad-ray.yaml`: groups of replicas, their models and resources, and where clients connect."""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Whole = Annotated[int, Field(strict=True)]
Port = Annotated[int, Field(ge=0, le=65535, strict=True)]
"""A port; 0 takes any free one."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
Folders = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Section(BaseModel):
    """A section of the file, which takes no other keys than its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Autoscale(Section):
    """How many replicas a group has for its load: `target` per replica, of requests in flight or of queued requests."""

    minimum: Whole = Field(default=1, ge=0)
    maximum: Whole = Field(default=1, ge=1)
    target: float = Field(default=8.0, gt=0)
    by: Literal["requests", "queue"] = "requests"
    interval: float = Field(default=2.0, gt=0)
    look_back: float = Field(default=10.0, gt=0)
    up_after: float = Field(default=5.0, ge=0)
    down_after: float = Field(default=120.0, ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum is {self.minimum}, more than the maximum of {self.maximum}")
        return self


class Scaled(Section):
    """What has replicas on Ray: a fixed number, or one that follows the load, and what each of them takes."""

    replicas: Whole | None = Field(default=None, ge=1)
    autoscale: Autoscale | None = None
    num_cpus: float = Field(default=1.0, ge=0)
    num_gpus: float = Field(default=0.0, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    max_ongoing_requests: Whole | None = Field(default=None, ge=1)
    surge_percent: Whole = Field(default=0, ge=0, le=100)

    @model_validator(mode="after")
    def _one_way_to_scale(self) -> Self:
        if self.replicas is not None and self.autoscale is not None:
            raise ValueError("has both replicas and autoscale; keep one of them")
        return self


FRONT_DESK = Scaled(num_cpus=0.5)
"""The front desk of a file that needs one and describes none."""


class Group(Scaled):
    """Replicas with the same models: every one of them is a whole server with all of these.

    `models` are names or patterns (`bert-*`); a group without them has every model that no other group names.
    `repository` and `options` stand for, and are added to, those of the file.
    """

    name: Name
    models: tuple[str, ...] = ()
    repository: Folders = ()
    options: dict[str, Any] = Field(default_factory=dict)


class Http(Section):
    """Where HTTP is served, on every node that has a proxy."""

    host: str = "0.0.0.0"  # noqa: S104 - as naiad serve
    port: Port = 8000


class Grpc(Section):
    """Where gRPC is served, on every node that has a proxy."""

    port: Port = 8001


class Description(Section):
    """A whole application on Ray Serve. A file without groups has one, with every model of the repository.

    `ingress` is what listens on the ports of a node: the proxies of Ray Serve, or HAProxy.
    """

    name: Name = "naiad"
    repository: Folders = ()
    options: dict[str, Any] = Field(default_factory=dict)
    ingress: Literal["proxy", "haproxy"] = "proxy"
    http: Http = Http()
    grpc: Grpc | None = Grpc()
    health_seconds: float = Field(default=10.0, gt=0)
    drain_seconds: float = Field(default=30.0, gt=0)
    front_desk: Scaled | None = None
    groups: tuple[Group, ...] = Field(default=(Group(name="models"),), min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [group.name for group in self.groups]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two groups are named '{name}'; give each its own name")
            if name in ("front-desk", "control-plane"):
                raise ValueError(f"a group cannot be named '{name}', which is another part of the application")
        rest = [group.name for group in self.groups if not group.models]
        if len(rest) > 1:
            raise ValueError(f"the groups {' and '.join(rest)} have no models; name them in all groups but one")
        bare = [group.name for group in self.groups if not (group.repository or self.repository)]
        if bare:
            raise ValueError(
                f"group '{bare[0]}' has no model repository; add the key repository, of the file or the group"
            )
        return self

    def group_of(self, model: str) -> Group | None:
        """The group that serves a model of that name, None if there is none."""
        for group in self.groups:
            if any(fnmatchcase(model, pattern) for pattern in group.models):
                return group
        return next((group for group in self.groups if not group.models), None)

    def repository_of(self, group: Group) -> tuple[str, ...]:
        """The folders of models of a group."""
        return group.repository or self.repository
