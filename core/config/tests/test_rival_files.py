"""Files of several backends in one version folder: the warning when the configuration chooses none."""

import pytest

from naiad_config import ModelConfig
from naiad_config.detection import BackendSearch
from naiad_config.errors import ConfigError

from .rules import Formats

ONNX = Formats("onnxruntime", ("onnxruntime_onnx",), {"model.onnx": "onnxruntime_onnx"})
TENSORFLOW = Formats(
    "tensorflow",
    ("tensorflow_savedmodel", "tensorflow_graphdef"),
    {"model.savedmodel": "tensorflow_savedmodel", "model.graphdef": "tensorflow_graphdef"},
)


@pytest.fixture
def version(tmp_path):
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    return folder


def rivals(config, version, traits=(TENSORFLOW, ONNX)):
    return BackendSearch(config, version, traits).describe_rivals()


def test_files_of_two_frameworks_are_reported_with_the_one_that_is_chosen(version):
    (version / "model.onnx").touch()
    (version / "model.pt").touch()

    assert rivals(ModelConfig(name="m"), version) == (
        "model 'm' has files of several backends, model.onnx (onnxruntime) and model.pt (pytorch), and its "
        "configuration names none of them: it is served by onnxruntime; set 'backend' to choose, or take the files of "
        "the others away"
    )


@pytest.mark.parametrize(
    "choice", [{"backend": "onnxruntime"}, {"platform": "onnxruntime_onnx"}, {"default_model_filename": "model.onnx"}]
)
def test_a_configuration_that_chooses_between_two_frameworks_is_taken_at_its_word(version, choice):
    (version / "model.onnx").touch()
    (version / "model.pt").touch()

    assert rivals(ModelConfig(name="m", **choice), version) == ""


def test_two_files_of_one_backend_are_no_rivals(version):
    (version / "model.savedmodel").mkdir()
    (version / "model.graphdef").touch()

    assert rivals(ModelConfig(name="m"), version) == ""


def test_a_known_file_that_only_a_backend_of_another_name_claims_has_no_rival(version):
    (version / "model.pt").touch()

    assert rivals(ModelConfig(name="m"), version, (Formats("light", files={"model.pt": ""}),)) == ""


def test_several_readers_of_a_second_file_are_reported_and_not_refused(version):
    (version / "model.onnx").touch()
    (version / "model.txt").touch()
    claiming = [Formats(name, files={"model.txt": ""}) for name in ("one", "two")]

    assert "model.onnx (onnxruntime) and model.txt (one or two)" in rivals(
        ModelConfig(name="m"), version, (ONNX, *claiming)
    )


def test_a_file_that_another_backend_can_read_besides_is_left_to_its_own(version):
    (version / "model.onnx").touch()
    openvino = Formats("openvino", files={"model.xml": "", "model.onnx": ""})

    with pytest.raises(ConfigError) as caught:
        BackendSearch(ModelConfig(name="m"), version, [openvino], "Install {}.".format).resolve()

    (problem,) = caught.value.problems
    assert "'onnxruntime'" in problem.message
    assert "Install onnxruntime. Or set 'backend' to 'openvino', " in problem.hint
