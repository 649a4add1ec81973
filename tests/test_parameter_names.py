"""Every backend of a framework treats parameters and settings that it does not know by the one rule of the core."""

import logging
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from naiad.backend import Backend, ModelContext
from naiad.errors import ConfigError, NaiadError
from naiad_config.text import parse_text
from naiad_kit.backends.parameters import KnownNames

DOCS = Path(__file__).parents[1] / "docs"
BACKENDS = {
    "onnx": "OnnxBackend",
    "tensorrt": "TensorRtBackend",
    "caffe2": "Caffe2Backend",
    "openvino": "OpenVinoBackend",
    "torch": "TorchBackend",
    "tensorflow": "TensorFlowBackend",
}


def backend_of(plugin: str) -> Backend:
    backend: Backend = getattr(import_module(f"naiad_{plugin}.backend"), BACKENDS[plugin])()
    return backend


def names_of(plugin: str) -> KnownNames:
    names: KnownNames = import_module(f"naiad_{plugin}.parameters").NAMES
    return names


def context_of(folder: Path, key: str) -> ModelContext:
    """A model without any file, whose configuration has that parameter and is complete."""
    tensors = " ".join(f'{each} {{ name: "{each}" data_type: TYPE_FP32 dims: 1 }}' for each in ("input", "output"))
    written = f'name: "m" {tensors} parameters {{ key: "{key}" value {{ string_value: "1" }} }}'
    return ModelContext(parse_text(written), 1, folder, folder / "1", {"no-such-setting": "1"})


@pytest.mark.parametrize("plugin", BACKENDS)
@pytest.mark.parametrize("method", ["complete", "load"])
def test_a_slip_in_a_parameter_is_found_by_a_check_and_keeps_the_model_from_loading(
    plugin: str, method: str, tmp_path: Path
) -> None:
    known = names_of(plugin).parameters[0]

    with pytest.raises(ConfigError, match=f"did you mean '{known}'"):
        getattr(backend_of(plugin), method)(context_of(tmp_path, f"{known}S"))


@pytest.mark.parametrize("plugin", BACKENDS)
def test_what_is_like_a_parameter_is_reported_in_the_log_and_keeps_nothing_from_loading(
    plugin: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known = names_of(plugin).parameters[0]

    with caplog.at_level(logging.WARNING, "naiad.model"), suppress(NaiadError):  # there is no model to load
        backend_of(plugin).load(context_of(tmp_path, known.swapcase()))

    recorded = [record.getMessage() for record in caplog.records]
    assert f"has no parameter '{known.swapcase()}'; did you mean '{known}'?" in recorded[0]
    assert "has no setting 'no-such-setting'; known are " in recorded[1]


@pytest.mark.parametrize("plugin", BACKENDS)
def test_every_parameter_and_setting_is_on_the_page_of_the_backend(plugin: str) -> None:
    page, names = (DOCS / f"{plugin}.md").read_text(encoding="utf-8"), names_of(plugin)

    assert [name for name in (*names.parameters, *names.settings, *names.old) if f"`{name}`" not in page] == []
