"""Folders that are one model, named on the command line with the model's name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad_cli.model_files import ModelFiles
from naiad_config.model_folder import read_model

from .test_model_files import PythonPlugin


def files_of(*words: Path, name: str = "fraud") -> ModelFiles:
    return ModelFiles([str(word) for word in words], PluginRegistry.of([PythonPlugin()]), name)


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_bare_model_file_is_a_model_with_all_of_its_folder(tmp_path: Path) -> None:
    for name in ("model.py", "beads.txt", "labels.csv"):
        write(tmp_path / name)
    write(tmp_path / "config.pbtxt", "max_batch_size: 8")

    with files_of(tmp_path) as files:
        (repository,) = files.repositories
        model = read_model(Path(repository) / "fraud")
        files.follow()
        linked = {path.name: path.resolve() for path in Path(repository, "fraud", "1").iterdir()}

    assert (model.config.backend, model.config.default_model_filename) == ("python", "model.py")
    assert model.config.max_batch_size == 8
    assert linked == {name: tmp_path / name for name in ("model.py", "beads.txt", "labels.csv")}


def test_a_bare_file_of_any_name_is_known_by_its_suffix_where_it_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path / "necklace.txt")
    write(tmp_path / "README.md")

    with files_of(tmp_path) as files:
        assert read_model(Path(files.repositories[0]) / "fraud").config.default_model_filename == "necklace.txt"


def test_a_folder_that_may_not_be_read_is_left_to_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("1", "add/1"):
        (tmp_path / name).mkdir(parents=True)
    listed = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name in ("1", "closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)

    for name in ("", "add", "closed"):
        with files_of(tmp_path / name, name="") as files:
            assert files.repositories == (str(tmp_path / name),)


def test_several_files_none_of_which_is_called_model_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    write(tmp_path / "b.txt")

    with pytest.raises(
        InvalidArgumentError, match=rf"model files, a.txt, b.txt; name the one to serve, {tmp_path}/a.txt"
    ):
        files_of(tmp_path)


def test_the_folder_of_a_model_serves_under_the_name_with_its_configuration_and_later_versions(tmp_path: Path) -> None:
    write(tmp_path / "1" / "model.py")
    write(tmp_path / "config.pbtxt", "max_batch_size: 8")

    with files_of(tmp_path) as files:
        folder = Path(files.repositories[0]) / "fraud"
        write(tmp_path / "2" / "model.py")
        model = read_model(folder)

        assert (model.config.max_batch_size, model.versions) == (8, (2,))
        assert files.in_words_of_user(f"{folder}/config.pbtxt:1:1: no") == f"{tmp_path}/config.pbtxt:1:1: no"


@pytest.mark.parametrize(
    ("inside", "linked"),
    [("", {"1": ""}), ("3/", {"3": "3"}), ("0003/", {"3": "0003"})],
    ids=["bare", "versions", "as for TensorFlow Serving"],
)
def test_a_saved_model_of_tensorflow_becomes_model_savedmodel(
    tmp_path: Path, inside: str, linked: dict[str, str]
) -> None:
    write(tmp_path / f"{inside}saved_model.pb")
    write(tmp_path / f"{inside}variables" / "variables.index")

    with files_of(tmp_path) as files:
        folder = Path(files.repositories[0]) / "fraud"
        versions = {path.name: (path / "model.savedmodel").resolve() for path in folder.iterdir()}

    assert versions == {version: tmp_path / target for version, target in linked.items()}


def test_a_repository_stays_one_and_a_name_that_no_model_of_it_has_is_warned_of(tmp_path: Path) -> None:
    write(tmp_path / "add" / "1" / "model.py")
    write(tmp_path / "train.py")

    with files_of(tmp_path) as other, files_of(tmp_path, name="add") as same:
        assert other.repositories == same.repositories == (str(tmp_path),)
        assert [*same.warnings()] == []
        (warning,) = other.warnings()

    assert f"--model-name=fraud names no model: '{tmp_path}' is a model repository" in warning


def test_a_file_is_served_under_the_name(tmp_path: Path) -> None:
    with files_of(write(tmp_path / "final_v2.py")) as files:
        assert read_model(Path(files.repositories[0]) / "fraud").config.default_model_filename == "final_v2.py"


def test_a_name_for_several_words_and_one_that_leaves_the_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="names one model, and there are 2 folders and files to serve"):
        files_of(tmp_path, tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"--model-name=\.\./x is not the name of a model"):
        files_of(tmp_path, name="../x")


def test_the_name_of_a_url_is_its_fragment() -> None:
    with ModelFiles(["s3://bucket/resnet"], PluginRegistry.of([PythonPlugin()]), "resnet") as files:
        assert files.repositories == ("s3://bucket/resnet#resnet",)
        assert [*files.warnings()] == []


def test_without_a_name_a_bare_folder_is_answered_with_the_option(tmp_path: Path) -> None:
    write(tmp_path / "model.py")
    write(tmp_path / "1" / "model.py")
    with pytest.raises(InvalidArgumentError, match=f"add --model-name={tmp_path.name}, or write naiad serve"):
        files_of(tmp_path, name="")
