"""The temporary repository of model files, and what is said about folders that are no repositories."""

from pathlib import Path
from threading import Event, current_thread

import pytest

import naiad
from naiad import PluginRegistry
from naiad.backend import BackendTraits, Model, ModelContext
from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_cli.model_files import ModelFiles
from naiad_config import ModelConfig
from naiad_config.model_folder import read_model


class UnusedBackend:
    """A backend that is known by its traits alone."""

    def __init__(self, name: str, file: str) -> None:
        self.traits = BackendTraits(name, files={file: ""})

    def complete(self, context: ModelContext) -> ModelConfig:
        raise AssertionError(f"{context.config.name} must not be completed")

    def load(self, context: ModelContext) -> Model:
        raise AssertionError(f"{context.config.name} must not be loaded")


class PythonPlugin:
    @naiad.hookimpl
    def naiad_backends(self) -> list[UnusedBackend]:
        return [UnusedBackend("python", "model.py"), UnusedBackend("beads", "beads.txt")]


def files_of(*words: Path) -> ModelFiles:
    return ModelFiles([str(word) for word in words], PluginRegistry.of([PythonPlugin()]))


def test_a_file_becomes_a_model_of_its_name_in_a_repository_of_links(tmp_path: Path) -> None:
    source = tmp_path / "fraud.py"
    source.write_text("")

    with files_of(source) as files:
        (repository,) = files.repositories
        model = read_model(Path(repository) / "fraud")

        assert (model.config.backend, model.config.default_model_filename) == ("python", "fraud.py")
        assert (Path(repository) / "fraud" / "1" / "fraud.py").resolve() == source
    assert not Path(repository).exists()


def test_a_backend_that_was_installed_is_known_by_the_suffix_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "necklace.txt").write_text("4")

    with files_of(tmp_path / "necklace.txt") as files:
        assert read_model(Path(files.repositories[0]) / "necklace").config.backend == "beads"


def test_a_configuration_beside_the_file_counts_and_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "fraud.py").write_text("")
    (tmp_path / "fraud.pbtxt").write_text("max_batch_size: 8\nmx: 1")

    with files_of(tmp_path / "fraud.py") as files:
        with pytest.raises(naiad.errors.ConfigError) as error:
            read_model(Path(files.repositories[0]) / "fraud")

        assert files.in_words_of_user(str(error.value)).startswith(f"{tmp_path}/fraud.pbtxt:2:1: mx: unknown key")


def test_files_whose_names_begin_alike_come_with_a_file_that_is_no_code(tmp_path: Path) -> None:
    for name in ("net.txt", "net.txt.data", "net_weights.bin", "other.txt"):
        (tmp_path / name).write_text("")

    with files_of(tmp_path / "net.txt") as files:
        linked = {path.name for path in Path(files.repositories[0], "net", "1").iterdir()}

    assert linked == {"net.txt", "net.txt.data", "net_weights.bin"}


def test_modules_that_come_later_are_linked_for_a_server_that_polls(tmp_path: Path) -> None:
    (tmp_path / "fraud.py").write_text("")
    with files_of(tmp_path / "fraud.py") as files:
        (tmp_path / "features.py").write_text("")
        files.follow()

        assert Path(files.repositories[0], "fraud", "1", "features.py").exists()


def test_the_end_waits_for_the_links_that_are_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fraud.py").write_text("")
    monkeypatch.setattr("naiad_cli.model_files._REFRESH_SECONDS", 0.01)
    refreshing, closed, was_closed, threads = Event(), Event(), [], []

    def refresh(files: ModelFiles) -> None:
        if current_thread().name == "naiad-links":
            threads.append(current_thread())
            refreshing.set()
            was_closed.append(closed.wait(0.2))

    monkeypatch.setattr(ModelFiles, "_refresh", refresh)
    with files_of(tmp_path / "fraud.py") as files:
        files.follow()
        assert refreshing.wait(30)
    closed.set()
    threads[0].join()

    assert not any(was_closed)


def test_paths_of_the_temporary_repository_are_shown_as_those_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "fraud.py").write_text("")

    with files_of(tmp_path / "fraud.py") as files:
        folder = f"{files.repositories[0]}/fraud"

        assert files.in_words_of_user(f"{folder}/1/fraud.py:3: no") == f"{tmp_path}/fraud.py:3: no"
        assert files.in_words_of_user(f"{folder}/config.pbtxt: no") == f"{tmp_path}/fraud.py: no"


def test_the_path_of_a_file_whose_name_begins_as_another_is_its_own(tmp_path: Path) -> None:
    for name in ("add.py", "add2.py"):
        (tmp_path / name).write_text("")

    with files_of(tmp_path / "add.py", tmp_path / "add2.py") as files:
        folder = f"{files.repositories[0]}/add2"

        assert files.in_words_of_user(f"{folder}/1/add2.py:3: no") == f"{tmp_path}/add2.py:3: no"
        assert files.in_words_of_user(f"{folder}/config.pbtxt: no") == f"{tmp_path}/add2.py: no"


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fraud.py").write_text("")

    with pytest.raises(InvalidArgumentError, match="are both model 'fraud'; rename one"):
        files_of(tmp_path / "a" / "fraud.py", tmp_path / "b" / "fraud.py")


def test_a_file_that_no_backend_reads_is_refused_with_the_suffixes_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "fraud.doc").write_text("")

    with pytest.raises(InvalidArgumentError, match=r"fraud.doc' is not a model file that a backend reads.*\.py"):
        files_of(tmp_path / "fraud.doc")


def test_a_file_whose_backend_is_missing_names_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("")

    with pytest.raises(NotFoundError, match="naiad-onnx"):
        files_of(tmp_path / "net.onnx")


@pytest.mark.parametrize("named", ["add", "add/1"])
def test_the_folder_of_a_model_or_a_version_is_answered_with_the_repository_to_write(
    tmp_path: Path, named: str
) -> None:
    (tmp_path / "add" / "1").mkdir(parents=True)
    (tmp_path / "add" / "1" / "model.py").write_text("")

    with pytest.raises(InvalidArgumentError, match=f"write naiad serve {tmp_path} .*--load-model=add"):
        files_of(tmp_path / named)


def test_the_folder_of_a_model_whose_version_is_empty_is_answered_with_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "my add" / "1").mkdir(parents=True)

    with pytest.raises(InvalidArgumentError, match=rf"version folder '1' has no model file; .*model\.py.* {tmp_path}$"):
        files_of(tmp_path / "my add")


def test_a_model_file_that_is_not_there_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "fraud.py").write_text("")

    with pytest.raises(NotFoundError, match=r"no model file '.*/frud\.py'; did you mean 'fraud\.py'"):
        files_of(tmp_path / "frud.py")


def test_a_repository_with_a_model_whose_name_is_a_number_is_a_repository(tmp_path: Path) -> None:
    (tmp_path / "1" / "1").mkdir(parents=True)
    (tmp_path / "1" / "1" / "model.py").write_text("")

    with files_of(tmp_path) as files:
        assert files.repositories == (str(tmp_path),)


def test_an_empty_repository_and_one_of_loose_files_are_warned_of_with_what_to_do(tmp_path: Path) -> None:
    (warning,) = files_of(tmp_path).warnings()
    assert "has no model" in warning
    assert "naiad new model" in warning

    (tmp_path / "fraud.py").write_text("")
    (warning,) = files_of(tmp_path).warnings()

    assert f"write naiad serve {tmp_path}/fraud.py, or add --model-name=fraud, or move it to" in warning
    assert warning.endswith(f"{tmp_path}/fraud/1/model.py")
