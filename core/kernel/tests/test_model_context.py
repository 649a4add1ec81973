"""Finding the files of a model version, and nothing outside its folder."""

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_config import ModelConfig


@pytest.fixture
def context(tmp_path):
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    return ModelContext(ModelConfig(name="m"), 1, folder, folder / "1")


def test_the_first_candidate_that_is_there_is_found(context):
    (context.version_directory / "b").touch()
    (context.version_directory / "c").mkdir()

    result = context.existing_path(*(context.version_directory / name for name in "abc"))

    assert result == context.version_directory / "b"


def test_a_missing_file_is_reported_with_what_is_there_instead(context):
    (context.version_directory / "y").touch()
    (context.version_directory / "x").touch()

    with pytest.raises(NotFoundError) as caught:
        context.existing_path(context.version_directory / "a", context.version_directory / "b")

    assert str(caught.value) == (
        f"unable to find '{context.version_directory}/a' for model 'm': the version folder has x, y; put the model "
        "there, or name it with default_model_filename"
    )


def test_a_version_folder_that_is_gone_is_reported_to_be_empty(context):
    context.version_directory.rmdir()

    with pytest.raises(NotFoundError, match="the version folder is empty"):
        context.existing_path(context.version_directory / "a")


def test_a_path_begins_at_the_models_folder(context):
    assert context.path_inside("lib/x.so", "library") == context.model_directory / "lib" / "x.so"


@pytest.mark.parametrize("path", ["../x.so", "1/../../x.so", "/etc/passwd", "link/x.so"])
def test_a_path_out_of_the_models_folder_is_refused(context, path):
    (context.model_directory / "link").symlink_to(context.model_directory.parent)

    with pytest.raises(InvalidArgumentError, match=r"^library 'x' leaves the model's folder"):
        context.path_inside(path, "library 'x'")
