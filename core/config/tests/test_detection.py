"""Which backend serves a model."""

import pytest

from naiad_config import ModelConfig
from naiad_config.detection import KNOWN_FORMATS, BackendSearch
from naiad_config.errors import ConfigError

from .rules import Formats

ONNX = Formats("onnxruntime", ("onnxruntime_onnx",), {"model.onnx": "onnxruntime_onnx"})
TENSORRT = Formats("tensorrt")
PYTHON = Formats("python", ("custom",), {"model.py": ""}, aliases=("custom",))
TENSORFLOW = Formats(
    "tensorflow",
    ("tensorflow_savedmodel", "tensorflow_graphdef"),
    {"model.savedmodel": "tensorflow_savedmodel", "model.graphdef": "tensorflow_graphdef"},
)
TORCH = Formats("pytorch", ("pytorch_libtorch",), {"model.pt": "pytorch_libtorch"})
BARE = Formats("identity")
INSTALLED = (BARE, TENSORFLOW, PYTHON, ONNX)


@pytest.fixture
def version(tmp_path):
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    return folder


def resolved(config, version, traits=INSTALLED):
    backend = BackendSearch(config, version, traits).resolve()
    return backend.backend, backend.platform, backend.default_model_filename


def where_to_get(backend):
    return f"Install {backend}." if backend in {known.backend for known in KNOWN_FORMATS} else ""


def refusal(config, version, traits=INSTALLED, skipped=()):
    with pytest.raises(ConfigError) as caught:
        BackendSearch(config, version, traits, where_to_get, skipped).resolve()
    (problem,) = caught.value.problems
    return problem


def test_a_backend_that_is_not_known_may_be_that_of_a_skipped_plugin(version):
    problem = refusal(ModelConfig(name="m", backend="acme"), version, [PYTHON], ["acme-naiad was skipped: no acme"])

    assert problem.hint == "Installed backends: python. acme-naiad was skipped: no acme"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("model.onnx", ("onnxruntime", "onnxruntime_onnx", "model.onnx")),
        ("model.py", ("python", "", "model.py")),
        ("model.savedmodel", ("tensorflow", "tensorflow_savedmodel", "model.savedmodel")),
        ("model.graphdef", ("tensorflow", "tensorflow_graphdef", "model.graphdef")),
    ],
)
def test_a_model_file_tells_the_backend(version, file, expected):
    (version / file).touch()

    assert resolved(ModelConfig(name="m"), version) == expected


def test_a_folder_may_be_the_model_file(version):
    (version / "model.onnx").mkdir()

    assert resolved(ModelConfig(name="m"), version) == ("onnxruntime", "onnxruntime_onnx", "model.onnx")


def test_a_framework_file_goes_before_python_code(version):
    (version / "model.py").touch()
    (version / "model.onnx").touch()

    assert resolved(ModelConfig(name="m"), version)[0] == "onnxruntime"


def test_a_backend_may_bring_a_file_of_its_own(version):
    (version / "model.forest").touch()
    forest = Formats("forest", files={"model.forest": ""})

    assert resolved(ModelConfig(name="m"), version, (*INSTALLED, forest)) == ("forest", "", "model.forest")


def test_a_backend_of_another_name_may_claim_a_known_file(version):
    (version / "model.pt").touch()
    light = Formats("light", files={"model.pt": ""})

    assert resolved(ModelConfig(name="m"), version, (light,)) == ("light", "", "model.pt")


def test_a_file_that_several_backends_claim_asks_for_the_backend(version):
    (version / "model.txt").touch()
    claiming = [Formats(name, files={"model.txt": ""}) for name in ("one", "two")]

    problem = refusal(ModelConfig(name="m"), version, claiming)

    assert problem.message == "several backends read the file 'model.txt' of 'm'"
    assert problem.hint == "set 'backend' to 'one' or 'two'"


def test_the_configured_file_name_tells_the_backend(version):
    config = ModelConfig(name="m", default_model_filename="resnet.onnx")

    assert resolved(config, version) == ("onnxruntime", "onnxruntime_onnx", "resnet.onnx")


def test_the_platform_tells_the_backend(version):
    config = ModelConfig(name="m", platform="tensorflow_graphdef")

    assert resolved(config, version) == ("tensorflow", "tensorflow_graphdef", "model.graphdef")


def test_the_platform_of_older_servers_tells_the_backend(version):
    assert resolved(ModelConfig(name="m", platform="custom"), version) == ("python", "custom", "model.py")


def test_the_backend_tells_the_platform(version):
    assert resolved(ModelConfig(name="m", backend="onnxruntime"), version) == (
        "onnxruntime",
        "onnxruntime_onnx",
        "model.onnx",
    )


def test_the_file_tells_the_platform_of_a_backend_with_several(version):
    (version / "model.graphdef").touch()

    assert resolved(ModelConfig(name="m", backend="tensorflow"), version) == (
        "tensorflow",
        "tensorflow_graphdef",
        "model.graphdef",
    )


def test_the_configured_file_tells_the_platform_whatever_else_is_there(version):
    (version / "model.savedmodel").mkdir()
    (version / "old.graphdef").touch()
    config = ModelConfig(name="m", backend="tensorflow", default_model_filename="old.graphdef")

    assert resolved(config, version) == ("tensorflow", "tensorflow_graphdef", "old.graphdef")


def test_the_files_for_single_gpus_decide_the_platform_whatever_else_is_there(version):
    (version / "model.savedmodel").mkdir()
    (version / "sm90.graphdef").touch()
    config = ModelConfig(name="m", cc_model_filenames={"9.0": "sm90.graphdef"})

    assert resolved(config, version) == ("tensorflow", "tensorflow_graphdef", "model.graphdef")


def test_a_further_name_of_a_backend_is_kept(version):
    assert resolved(ModelConfig(name="m", backend="custom"), version) == ("custom", "", "model.py")


def test_the_name_of_the_model_may_end_with_its_backend(version):
    assert resolved(ModelConfig(name="echo.identity"), version) == ("identity", "", "model.identity")


def test_a_pair_of_platform_and_backend_must_fit(version):
    problem = refusal(ModelConfig(name="m", platform="onnxruntime_onnx", backend="tensorflow"), version)

    assert problem.message == "unexpected 'platform' and 'backend' pair, got: onnxruntime_onnx, tensorflow"
    assert problem.hint == "platform 'onnxruntime_onnx' goes with backend 'onnxruntime'"


def test_a_platform_that_the_backend_does_not_serve_is_refused(version):
    problem = refusal(ModelConfig(name="m", platform="tf", backend="tensorflow"), version)

    assert problem.path == "platform"
    assert problem.hint == "backend 'tensorflow' serves 'tensorflow_savedmodel', 'tensorflow_graphdef'"


def test_an_unknown_platform_is_refused_with_the_nearest(version):
    problem = refusal(ModelConfig(name="m", platform="onnxruntime"), version, (PYTHON,))
    other = refusal(ModelConfig(name="m", platform="tensorflow_saved"), version)

    assert problem.message == "unexpected platform type 'onnxruntime' for 'm'"
    assert problem.hint == "Install onnxruntime."
    assert other.hint == "did you mean 'tensorflow_savedmodel'?"


def test_a_platform_without_a_backend_is_refused(version):
    problem = refusal(ModelConfig(name="m", platform="abacus_beads"), version, (ONNX,))

    assert problem.message == "unexpected platform type 'abacus_beads' for 'm'"
    assert problem.hint == "the platforms that are installed are ensemble, onnxruntime_onnx"


def test_an_unknown_backend_is_answered_with_those_installed(version):
    problem = refusal(ModelConfig(name="m", backend="onnxruntim"), version)

    assert problem.message == "'m' needs the backend 'onnxruntim', which no installed plugin offers"
    assert problem.hint == (
        "did you mean 'onnxruntime'? Installed backends: identity, onnxruntime, python, tensorflow."
    )


def test_where_else_a_backend_could_be_is_said_unless_its_name_is_misspelt(version):
    def hint(backend: str) -> str:
        search = BackendSearch(ModelConfig(name="m", backend=backend), version, (ONNX,), elsewhere=["Look there."])
        with pytest.raises(ConfigError) as raised:
            search.resolve()
        return raised.value.problems[0].hint

    assert hint("onnxruntim") == "did you mean 'onnxruntime'? Installed backends: onnxruntime."
    assert hint("abacus") == "Installed backends: onnxruntime. Look there."


def test_a_backend_that_only_triton_has_is_no_misspelt_name(version):
    search = BackendSearch(
        ModelConfig(name="m", backend="tensorrtllm"), version, (TENSORRT,), elsewhere=["Look there."]
    )

    with pytest.raises(ConfigError) as raised:
        search.resolve()

    assert raised.value.problems[0].hint == (
        "Naiad has no such backend; docs/from_triton.md says what to use instead. Installed backends: tensorrt. "
        "Look there."
    )


@pytest.mark.parametrize("known", KNOWN_FORMATS, ids=lambda known: known.file)
def test_a_model_file_without_its_plugin_says_what_to_install(version, known):
    (version / known.file).touch()

    problem = refusal(ModelConfig(name="m"), version, (BARE,))

    assert f"for its file '{known.file}', which no installed plugin offers" in problem.message
    assert problem.hint == f"Install {known.backend}. Installed backends: identity."


def test_a_second_file_of_an_installed_backend_is_offered(version):
    (version / "model.pt").touch()
    (version / "model.py").touch()

    problem = refusal(ModelConfig(name="m"), version, (PYTHON,))

    assert "Or set 'backend' to 'python', which reads its file 'model.py'" in problem.hint


def test_files_of_two_frameworks_without_their_plugins_say_what_to_install_for_each(version):
    (version / "model.pt").touch()
    (version / "model.onnx").touch()

    problem = refusal(ModelConfig(name="m"), version, (PYTHON,))

    assert "needs the backend 'onnxruntime' for its file 'model.onnx'" in problem.message
    assert problem.hint == (
        "Install onnxruntime. Its file 'model.pt' is one of the backend 'pytorch'; Install pytorch. "
        "Installed backends: python."
    )


@pytest.mark.parametrize("platform", sorted({known.platform for known in KNOWN_FORMATS if known.platform}))
def test_a_known_platform_without_its_plugin_says_what_to_install(version, platform):
    problem = refusal(ModelConfig(name="m", platform=platform), version, ())

    assert problem.hint.startswith("Install ")
    assert problem.hint.endswith("No backend is installed.")


def test_the_name_of_a_backend_without_its_plugin_says_what_to_install(version):
    problem = refusal(ModelConfig(name="net.pytorch"), version)

    assert "for the end of its name" in problem.message
    assert problem.hint.startswith("Install pytorch.")


def test_a_model_that_nothing_tells_about_is_refused_with_what_was_looked_for(version):
    problem = refusal(ModelConfig(name="m"), version)

    assert "could not determine the backend of 'm'" in problem.message
    assert "model.onnx" in problem.message
    assert "is not of the form 'model.<backend_name>'" in problem.message
    assert problem.hint.startswith("set 'backend'. Installed backends: ")


def test_a_platform_of_an_installed_backend_that_lacks_it_is_refused(version):
    problem = refusal(ModelConfig(name="m", platform="torch_aoti"), version, (TORCH,))

    assert problem.message == "unexpected platform type 'torch_aoti' for 'm'"
