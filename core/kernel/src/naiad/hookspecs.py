"""The whole extension surface of Naiad: every hook that a plugin may implement.

A plugin is a module (or object) with some of these functions marked `@naiad.hookimpl`, named by an entry point in the
group `naiad` of its distribution. Hooks are synchronous and called at start-up or at the edges of a model's life, never
on the path of a request; they hand out objects, and the objects do the work.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import asyncio

    from naiad.backend import Backend, ModelContext
    from naiad.cache import CacheFactory
    from naiad.extend import GateFactory, LoopRunner, RequestStage, Service, StageContext, WorkerKind
    from naiad.frontend import Frontend
    from naiad.options import Option, Settings
    from naiad.repositories import RepositoryAgent, RepositoryScheme
    from naiad.scheduler import SchedulerFactory
    from naiad.servables import ServableFactory
    from naiad.warmup import Warmup

hookspec = pluggy.HookspecMarker("naiad")
hookimpl = pluggy.HookimplMarker("naiad")


# Start-up: what is installed


@hookspec
def naiad_options() -> "Sequence[Option]":  # type: ignore[empty-body]
    """Options of this plugin for `naiad serve`. Called once, before any other hook."""


@hookspec
def naiad_backends() -> "Sequence[Backend]":  # type: ignore[empty-body]
    """Backends of this plugin. Called once at start-up; must not import a framework."""


@hookspec
def naiad_schedulers() -> "Sequence[SchedulerFactory]":  # type: ignore[empty-body]
    """Kinds of scheduler of this plugin. Called once at start-up."""


@hookspec
def naiad_frontends() -> "Sequence[Frontend]":  # type: ignore[empty-body]
    """Frontends of this plugin. Called once at start-up; `Frontend.start` follows before the models are loaded."""


@hookspec
def naiad_caches() -> "Sequence[CacheFactory]":  # type: ignore[empty-body]
    """Kinds of response cache of this plugin. Called once at start-up; the one that is asked for is opened then."""


@hookspec
def naiad_repositories() -> "Sequence[RepositoryScheme]":  # type: ignore[empty-body]
    """Kinds of model repository that are not folders. Called once at start-up."""


@hookspec
def naiad_repository_agents() -> "Sequence[RepositoryAgent]":  # type: ignore[empty-body]
    """Repository agents of this plugin. Called once at start-up; they are called before each load of a model."""


@hookspec
def naiad_servables() -> "Sequence[ServableFactory]":  # type: ignore[empty-body]
    """Factories of servables of this plugin. Called once at start-up; they are asked whether they serve each model."""


@hookspec
def naiad_services(settings: "Settings") -> "Sequence[Service]":  # type: ignore[empty-body]
    """Services of this plugin, made anew in each call, for the options in `settings`. Raise NaiadError for wrong ones.

    Called once for each server; `Service.start` follows before the start-up models are loaded.
    """


@hookspec
def naiad_gates(settings: "Settings") -> "Sequence[GateFactory]":  # type: ignore[empty-body]
    """Factories of execution gates, for the options in `settings`: none where nothing is limited, one of all plugins.

    Called once for each server. Raise NaiadError for an option that is wrong.
    """


@hookspec
def naiad_runners(  # type: ignore[empty-body]
    loop: "asyncio.AbstractEventLoop", settings: "Settings"
) -> "Sequence[LoopRunner]":
    """Another way to run the event loop of `naiad serve`: one of all plugins. Called before the server is made."""


@hookspec
def naiad_workers(settings: "Settings", runner: "LoopRunner | None") -> "Sequence[WorkerKind]":  # type: ignore[empty-body]
    """Kinds of worker for a server whose event loop `runner` runs (None: one thread). Called once for each server."""


# The life of a model


@hookspec
def naiad_warmup(context: "ModelContext") -> "Sequence[Warmup]":  # type: ignore[empty-body]
    """Warm-ups for the instances of this model version. Called from a loader thread when the version was loaded.

    Raise NaiadError to fail the load.
    """


@hookspec
def naiad_stages(context: "StageContext") -> "Sequence[RequestStage]":  # type: ignore[empty-body]
    """New stages for the requests to this model version. Raise NaiadError to fail the load.

    Called when a version is loaded, from a loader thread; for an ensemble from the event loop, whenever it is bound to
    versions of its models, so it must not block.
    """
