"""The plugin registry, over fake entry points and lists of objects."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import naiad
from naiad._plugins.contributions import Contribution
from naiad._plugins.registry import PluginRegistry
from naiad.backend import Backend, BackendTraits, Instance, Model, ModelContext
from naiad.errors import InvalidArgumentError, PluginError
from naiad.options import Option, Settings
from naiad.scheduler import Scheduler
from naiad.warmup import VersionParts
from naiad_config import ModelConfig
from naiad_testing.caches import FakeCache
from naiad_testing.servables import FakeServables


class FakeBackend:
    def __init__(self, name: str, *aliases: str, framework: str | tuple[str, ...] = "") -> None:
        self.traits = BackendTraits(name, aliases=aliases, framework=framework)

    def complete(self, context: ModelContext) -> ModelConfig:
        return context.config

    def load(self, context: ModelContext) -> Model:
        raise InvalidArgumentError(f"{self.traits.name} loads nothing")


class FakeScheduler:
    def __init__(self, name: str, choice: str = "") -> None:
        self.name = name
        self.choice = choice

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        raise InvalidArgumentError(f"{self.name} schedules nothing for {config.name} on {instances}")


class FakeFrontend:
    name = "pigeon"

    async def start(self, server: "naiad.Server") -> str:
        return "the roof"

    async def stop(self, grace: float) -> None:
        return None


def plugin(**hooks: Callable[..., Any]) -> SimpleNamespace:
    """A plugin with those hook implementations."""
    return SimpleNamespace(**{name: naiad.hookimpl(function) for name, function in hooks.items()})


def offering_backends(*backends: Backend) -> SimpleNamespace:
    return plugin(naiad_backends=lambda: list(backends))


EMPTY = "import naiad\n@naiad.hookimpl\ndef naiad_options(): return []\n"


def test_installed_plugins_come_in_the_order_of_their_names(install: Callable[..., None]) -> None:
    install(("zebra", "naiad-zebra", EMPTY), ("ant", "naiad-ant", EMPTY))

    registry = PluginRegistry.discover()

    assert [(each.name, each.distribution, each.version, each.skipped) for each in registry.plugins] == [
        ("ant", "naiad-ant", "1.2", ""),
        ("zebra", "naiad-zebra", "1.2", ""),
    ]


def test_two_distributions_with_one_plugin_name_are_refused_naming_both(install: Callable[..., None]) -> None:
    install(("onnx", "naiad-onnx", EMPTY), ("onnx", "my-onnx", EMPTY))

    with pytest.raises(PluginError, match=r"'onnx'.*naiad-onnx and my-onnx.*uninstall one"):
        PluginRegistry.discover()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_framework", "ModuleNotFoundError: No module named 'no_such_framework' .*:1"),
        ("def broken(", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (EMPTY.replace("naiad_options", "naiad_option"), "no hook naiad_option; did you mean naiad_options\\?"),
        (EMPTY.replace("naiad_options()", "naiad_warmup(ctx)"), "Argument.*ctx"),
        (EMPTY.replace("[]", "1 // 0"), "ZeroDivisionError: .*:3"),
        (EMPTY.replace("[]", "7"), "naiad_options answered with int; return a list"),
        (EMPTY.replace("[]", "[7]"), "which is no Option"),
    ],
)
def test_a_broken_plugin_is_skipped_with_the_reason_and_the_others_stay(
    install: Callable[..., None], text: str, reason: str
) -> None:
    install(("broken", "naiad-broken", text), ("sound", "naiad-sound", EMPTY))

    registry = PluginRegistry.discover()

    broken, sound = registry.plugins
    assert sound.skipped == ""
    assert re.search(reason, broken.skipped)
    (warning,) = registry.warnings()
    assert warning == f"plugin 'broken' (naiad-broken 1.2) is skipped: {broken.skipped}"


def test_an_unknown_hook_far_from_all_others_is_answered_with_the_hooks_there_are() -> None:
    registry = PluginRegistry.of([plugin(serve_tea=lambda: ["tea"])])

    (report,) = registry.plugins

    assert report.skipped.startswith("there is no hook serve_tea; the hooks are naiad_backends, ")


def test_a_plugin_may_serve_the_hook_of_a_later_kernel_when_it_says_so() -> None:
    later = SimpleNamespace(naiad_teapots=naiad.hookimpl(lambda: ["teapot"], optionalhook=True))

    (report,) = PluginRegistry.of([later]).plugins

    assert report.skipped == ""


def test_the_contributions_of_a_plugin_are_attributed_to_it() -> None:
    rich = plugin(
        naiad_options=lambda: [Option("pigeon-port", 1, "where the pigeons land", int)],
        naiad_backends=lambda: [FakeBackend("abacus", "counting", framework="pytest")],
        naiad_schedulers=lambda: [FakeScheduler("lottery")],
        naiad_frontends=lambda: [FakeFrontend()],
        naiad_caches=lambda: [FakeCache()],
        naiad_gates=lambda settings: [],
        naiad_servables=lambda: [FakeServables("echo")],
        naiad_services=lambda settings: [],
        naiad_stages=lambda context: [],
        naiad_warmup=lambda context: [],
    )

    report, other = PluginRegistry.of([rich, offering_backends(FakeBackend("slide-rule"))]).plugins

    assert report.kinds == (
        "backend",
        "scheduler",
        "servable",
        "frontend",
        "cache",
        "gate",
        "service",
        "stage",
        "warmup",
        "options",
    )
    assert [str(each) for each in report.contributions] == [
        "backend abacus",
        "scheduler lottery",
        "servable echo",
        "frontend pigeon",
        "cache fake",
        "gate SimpleNamespace",
        "service SimpleNamespace",
        "stage SimpleNamespace",
        "warmup samples",
        "options --pigeon-port",
    ]
    assert other.contributions == (Contribution("backend", "slide-rule"),)


def test_backends_are_found_by_name_and_by_alias() -> None:
    backend = FakeBackend("abacus", "counting")
    registry = PluginRegistry.of([offering_backends(backend)])

    results = (registry.backends(), registry.backend("abacus"), registry.backend("counting"))

    assert results == ({"abacus": backend, "counting": backend}, backend, backend)


def test_a_scheduler_is_found_by_its_name_and_by_the_choice_it_serves() -> None:
    lottery, default = FakeScheduler("lottery", "dynamic_batching"), FakeScheduler("default")
    registry = PluginRegistry.of([plugin(naiad_schedulers=lambda: [lottery, default])])

    results = [registry.scheduler(name) for name in ("lottery", "dynamic_batching", "default")]

    assert results == [lottery, lottery, default]


def test_a_backend_without_load_is_no_backend() -> None:
    half = SimpleNamespace(traits=BackendTraits("half"), complete=lambda context: context.config)

    (report,) = PluginRegistry.of([offering_backends(half)]).plugins  # type: ignore[arg-type]

    assert report.skipped == "naiad_backends offered a SimpleNamespace, which is no Backend: it lacks load"


@pytest.mark.parametrize(
    ("hook", "things", "accessor", "clash"),
    [
        ("naiad_backends", [FakeBackend("abacus"), FakeBackend("beads", "abacus")], "backends", "backend 'abacus'"),
        ("naiad_schedulers", [FakeScheduler("lottery"), FakeScheduler("lottery")], "schedulers", "scheduler 'lottery'"),
        (
            "naiad_schedulers",
            [FakeScheduler("a", "dynamic_batching"), FakeScheduler("b", "dynamic_batching")],
            "schedulers",
            "scheduler for 'dynamic_batching'",
        ),
        ("naiad_frontends", [FakeFrontend(), FakeFrontend()], "frontends", "frontend 'pigeon'"),
        ("naiad_caches", [FakeCache(), FakeCache()], "caches", "cache 'fake'"),
        ("naiad_options", [Option("tea", "", ""), Option("tea", "", "")], "options", "option '--tea'"),
    ],
)
def test_two_things_of_one_name_are_refused_naming_both_plugins(
    hook: str, things: Sequence[object], accessor: str, clash: str
) -> None:
    first, second = (ModuleType(name) for name in ("first", "second"))
    for module, thing in zip((first, second), things, strict=True):
        setattr(module, hook, naiad.hookimpl(lambda thing=thing: [thing]))
    registry = PluginRegistry.of([first, second])

    with pytest.raises(PluginError, match=f"plugin 'first' and plugin 'second' both offer the {clash}"):
        getattr(registry, accessor)()


def test_a_plugin_that_offers_one_name_twice_is_refused() -> None:
    registry = PluginRegistry.of([offering_backends(FakeBackend("abacus"), FakeBackend("beads", "abacus"))])

    with pytest.raises(PluginError, match="plugin 'SimpleNamespace' offers the backend 'abacus'; fix it"):
        registry.check()


def test_an_option_of_the_kernel_cannot_be_taken() -> None:
    registry = PluginRegistry.of([plugin(naiad_options=lambda: [Option("log-file", "", "")])])

    with pytest.raises(PluginError, match="the kernel and plugin 'SimpleNamespace' both offer the option '--log-file'"):
        registry.options()


def test_the_options_are_the_kernels_and_those_of_the_plugins() -> None:
    registry = PluginRegistry.of([plugin(naiad_options=lambda: [Option("tea", "green", "which tea")])])

    names = [option.name for option in registry.options()]

    assert names[0] == "model-repository"
    assert names[-1] == "tea"


def test_a_plugin_that_is_listed_twice_is_refused() -> None:
    once = plugin()

    with pytest.raises(PluginError, match="'SimpleNamespace' is listed twice"):
        PluginRegistry.of([once, once])


CONTEXT = ModelContext(ModelConfig(name="m"), 1, Path("m"), Path("m/1"))


class Warming:
    """A warm-up that executes nothing."""

    progress = ""

    def warm_up(self, instance: Instance, name: str, parts: VersionParts) -> None:
        return None


def test_the_warm_ups_of_all_plugins_are_collected() -> None:
    first, second = Warming(), Warming()
    registry = PluginRegistry.of([plugin(naiad_warmup=lambda context: [first]), plugin(naiad_warmup=lambda: [second])])

    warmups = registry.warmup(CONTEXT)

    assert warmups == [first, second]


SETTINGS = Settings([], {})
HOOKS: dict[str, Callable[[PluginRegistry], object]] = {
    "naiad_services": lambda registry: registry.services(SETTINGS),
    "naiad_gates": lambda registry: registry.gates(SETTINGS),
    "naiad_workers": lambda registry: registry.workers(SETTINGS, None),
    "naiad_warmup": lambda registry: registry.warmup(CONTEXT),
    "naiad_stages": lambda registry: registry.stages(None),  # type: ignore[arg-type]  # the plugin does not look
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("kind", [AttributeError, SystemExit])
def test_a_hook_that_raises_fails_its_caller_and_names_its_plugin(hook: str, kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind("nonsense")

    with pytest.raises(PluginError, match=rf"{hook} of plugin 'SimpleNamespace' raised {kind.__name__}: nonsense \(.*"):
        HOOKS[hook](PluginRegistry.of([plugin(**{hook: fail})]))


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_returns_another_contract_is_an_error_of_its_plugin(hook: str) -> None:
    with pytest.raises(PluginError, match=rf"plugin 'SimpleNamespace': {hook} offered a int, which is no "):
        HOOKS[hook](PluginRegistry.of([plugin(**{hook: lambda: [7]})]))


def test_a_warmup_that_refuses_the_model_keeps_its_own_error() -> None:
    def refuse(context: ModelContext) -> list[Warming]:
        raise InvalidArgumentError(f"{context.config.name}: no warmup file")

    with pytest.raises(InvalidArgumentError, match="m: no warmup file"):
        PluginRegistry.of([plugin(naiad_warmup=refuse)]).warmup(CONTEXT)


def test_a_backend_is_offered_with_its_framework_and_with_what_to_install_for_it() -> None:
    backends = [
        FakeBackend("abacus"),
        FakeBackend("beads", framework="pytest"),
        FakeBackend("pytorch", framework=("torch", "torch-nightly")),
    ]

    (report,) = PluginRegistry.of([offering_backends(*backends)]).plugins

    assert report.contributions == (
        Contribution("backend", "abacus"),
        Contribution("backend", "beads", ("pytest",)),
        Contribution("backend", "pytorch", ("torch", "torch-nightly"), "naiad-torch[cpu]"),
    )
