"""A name that no plugin offers is answered with what is installed, what was skipped and what to install."""

from collections.abc import Callable

import pytest

import naiad
from naiad._plugins.known_plugins import where_to_get
from naiad._plugins.registry import PluginRegistry
from naiad.backend import BackendTraits, Model, ModelContext
from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_config import ModelConfig
from naiad_config.detection import KNOWN_FORMATS
from naiad_config.installing import install_command


class Abacus:
    traits = BackendTraits("abacus")

    def complete(self, context: ModelContext) -> ModelConfig:
        return context.config

    def load(self, context: ModelContext) -> Model:
        raise InvalidArgumentError(f"the abacus cannot load {context.config.name}")


class AbacusPlugin:
    @naiad.hookimpl
    def naiad_backends(self) -> list[Abacus]:
        return [Abacus()]


class MisspeltPlugin:
    @naiad.hookimpl
    def naiad_backend(self) -> list[Abacus]:
        return [Abacus()]


def test_an_unknown_backend_of_a_known_distribution_is_answered_with_how_to_install_it() -> None:
    registry = PluginRegistry.of([AbacusPlugin()])

    with pytest.raises(NotFoundError) as caught:
        registry.backend("onnxruntime")

    assert str(caught.value) == (
        "no plugin offers the backend 'onnxruntime'; installed backends: abacus. "
        f"It comes with naiad-onnx: {install_command('naiad-onnx[cpu]')}."
    )


def test_a_missing_scheduler_and_frontend_are_answered_alike() -> None:
    registry = PluginRegistry.of([])

    with pytest.raises(NotFoundError, match="It comes with naiad-scheduler-dynamic: pip install"):
        registry.scheduler("dynamic_batching")
    with pytest.raises(NotFoundError, match=r"installed frontends: none\. It comes with naiad-http"):
        registry.find("frontend", "http", registry.frontends())


def test_a_backend_whose_plugin_was_skipped_is_answered_with_the_reason(install: Callable[..., None]) -> None:
    install(("onnx", "naiad-onnx", "import no_such_framework"))

    with pytest.raises(NotFoundError, match="naiad-onnx would offer it, but was skipped: ModuleNotFoundError"):
        PluginRegistry.discover().backend("onnxruntime")


def test_a_name_that_is_not_known_is_answered_with_every_skipped_plugin() -> None:
    registry = PluginRegistry.of([MisspeltPlugin()])

    with pytest.raises(NotFoundError, match=r"Plugin 'MisspeltPlugin' was skipped: .* naiad_backend;"):
        registry.backend("abacus")


@pytest.mark.parametrize(
    ("option", "distribution"), [("http-port", "naiad-http"), ("rate-limit", "naiad-rate-limiter")]
)
def test_an_option_is_known_by_its_distribution_too(option: str, distribution: str) -> None:
    advice = PluginRegistry.of([]).what_to_install("option", option)

    assert advice == f"It comes with {distribution}: {install_command(distribution)}."


@pytest.mark.parametrize(
    ("file", "distribution"),
    [
        ("model.savedmodel", "naiad-tensorflow"),
        ("model.graphdef", "naiad-tensorflow"),
        ("model.plan", "naiad-tensorrt"),
        ("model.onnx", "naiad-onnx"),
        ("model.xml", "naiad-openvino"),
        ("model.pt", "naiad-torch"),
        ("model.pt2", "naiad-torch"),
        ("model.netdef", "naiad-caffe2"),
        ("libcustom.so", "naiad-custom"),
        ("model.py", "naiad-custom"),
    ],
)
def test_the_backend_of_a_model_file_is_known_by_its_distribution(file: str, distribution: str) -> None:
    (known,) = [each for each in KNOWN_FORMATS if each.file == file]

    assert f"It comes with {distribution}: pip install" in where_to_get("backend", known.backend, {})


def test_every_known_format_has_a_distribution() -> None:
    assert all(where_to_get("backend", known.backend, {}) for known in KNOWN_FORMATS)


def test_nothing_is_advised_for_a_name_that_is_not_known() -> None:
    assert where_to_get("backend", "tea", {}) == ""
