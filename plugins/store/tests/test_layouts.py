"""Models in stores without a repository around them."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_store.layouts import model_of_file, models_of
from naiad_store.sources import StoredObject


def files(*paths: str) -> dict[str, StoredObject]:
    return {path: StoredObject("s3://bucket", path, 1, "etag") for path in paths}


def links(*paths: str, name: str = "m") -> dict[str, dict[str, str]]:
    """The models in a folder with these paths: the paths in each, with the path of the object."""
    models = models_of(files(*paths), name, "s3://bucket")
    return {model: {path: stored.path for path, stored in content.items()} for model, content in models.items()}


def test_a_folder_with_a_model_file_is_a_version() -> None:
    assert links("model.onnx", "weights/a.bin", "config.pbtxt", ".gitattributes") == {
        "m": {"1/model.onnx": "model.onnx", "1/weights/a.bin": "weights/a.bin", "config.pbtxt": "config.pbtxt"}
    }


def test_a_model_file_of_another_name_gets_that_of_the_backend_as_well() -> None:
    assert links("net.xml", "net.bin", "labels.txt") == {
        "m": {
            "1/net.xml": "net.xml",
            "1/model.xml": "net.xml",
            "1/net.bin": "net.bin",
            "1/model.bin": "net.bin",
            "1/labels.txt": "labels.txt",
        }
    }


def test_a_folder_of_versions_is_taken_as_it_is() -> None:
    assert links("config.pbtxt", "1/model.py", "2/model.py") == {
        "m": {path: path for path in ("config.pbtxt", "1/model.py", "2/model.py")}
    }


@pytest.mark.parametrize(("folder", "version"), [("", "1"), ("0003/", "3")])
def test_a_saved_model_becomes_model_savedmodel(folder: str, version: str) -> None:
    assert links(f"{folder}saved_model.pb", f"{folder}variables/x", "config.pbtxt") == {
        "m": {
            f"{version}/model.savedmodel/saved_model.pb": f"{folder}saved_model.pb",
            f"{version}/model.savedmodel/variables/x": f"{folder}variables/x",
            "config.pbtxt": "config.pbtxt",
        }
    }


def test_models_of_a_repository_keep_their_names() -> None:
    assert links("a/1/model.py", "b/config.pbtxt", "train.py", "__pycache__/x") == {
        "a": {"1/model.py": "a/1/model.py"},
        "b": {"config.pbtxt": "b/config.pbtxt"},
    }


def test_one_model_without_a_name_is_refused_with_what_to_add() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"'s3://bucket' is one model, .* add --model-name=NAME, or #NAME to"
    ):
        links("1/model.py", name="")


def test_several_model_files_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match=r"several model files, a.onnx, b.onnx; .* s3://bucket/a.onnx"):
        links("b.onnx", "a.onnx")


def test_a_file_that_is_not_there_is_no_model() -> None:
    assert model_of_file(files("a.onnx"), "b.onnx") == {}
