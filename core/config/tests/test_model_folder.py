"""Reading the folder of a model: configuration, location of its problems, versions."""

import pytest

from naiad_config.errors import ConfigError, InvalidArgumentError, Problem
from naiad_config.model_folder import read_model


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "3").mkdir()
    return tmp_path / "m"


def test_a_folder_without_a_configuration_is_a_model_of_its_name(folder):
    model = read_model(folder)

    assert (model.config.name, model.versions) == ("m", (3,))


def test_a_folder_that_cannot_be_listed_is_refused(folder, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)  # root may list every folder

    with pytest.raises(InvalidArgumentError, match=f"model folder '{folder}' cannot be read: Permission denied"):
        read_model(folder)


def test_a_problem_of_a_model_without_a_configuration_names_its_folder(folder):
    model = read_model(folder)

    with pytest.raises(ConfigError) as caught:
        model.check(model.config)

    assert {each.file for each in caught.value.problems} == {f"{folder}, which has no config.pbtxt"}


def test_a_configuration_is_read_with_the_positions_of_its_keys(folder):
    (folder / "config.pbtxt").write_text("max_batch_size: 4\nversion_policy { all { } }")

    model = read_model(folder)

    assert (model.config.max_batch_size, model.versions) == (4, (1, 3))
    assert model.positions["version_policy"] == (2, 1)


def test_an_override_replaces_the_file_and_a_name_that_of_the_folder(folder):
    (folder / "config.pbtxt").write_text("no text")

    model = read_model(folder, name="n", override='{"max_batch_size": 2}')

    assert (model.config.name, model.config.max_batch_size, model.file) == ("n", 2, "config of the load request")


def test_all_problems_of_a_configuration_are_raised_in_the_order_of_the_file(folder):
    (folder / "config.pbtxt").write_text('max_batch_size: -1\nname: "other"\nbackend: 3')

    with pytest.raises(ConfigError) as caught:
        read_model(folder)

    assert [(each.path, each.line) for each in caught.value.problems] == [
        ("max_batch_size", 1),
        ("name", 2),
        ("backend", 3),
    ]


def test_a_problem_that_is_noticed_later_gets_its_position(folder):
    (folder / "config.pbtxt").write_text('\nbackend: "b"')
    model = read_model(folder)

    with pytest.raises(ConfigError, match=r"config.pbtxt:2:1: backend: unknown"), model.locate_problems():
        raise ConfigError([Problem("unknown", "backend")])


def test_a_completed_configuration_is_checked_as_a_whole(folder):
    model = read_model(folder)

    with pytest.raises(ConfigError, match="must specify 'platform' or 'backend'"):
        model.check(model.config)


def test_a_model_without_a_version_to_serve_is_refused_with_its_folders(folder):
    (folder / "config.pbtxt").write_text("version_policy { specific { versions: 2 } }")

    with pytest.raises(InvalidArgumentError, match=r"its version folders are \[1, 3\]"):
        read_model(folder)


def test_a_configuration_that_is_no_file_is_not_read(folder):
    (folder / "config.pbtxt").mkdir()

    with pytest.raises(ConfigError, match="regular file"):
        read_model(folder)


@pytest.mark.parametrize(("name", "number"), [("v1", 1), ("version_12", 12), ("001", 1)])
def test_a_folder_that_looks_like_that_of_a_version_is_named_with_its_right_name(tmp_path, name, number):
    (tmp_path / name).mkdir()

    with pytest.raises(InvalidArgumentError, match=f"such as 1/; rename '{name}' to {number}$"):
        read_model(tmp_path)


def test_a_folder_of_models_in_place_of_a_model_is_named_as_the_repository(tmp_path):
    (tmp_path / "add" / "1").mkdir(parents=True)

    with pytest.raises(
        InvalidArgumentError, match=f"it has the model 'add': serve '{tmp_path}' as the model repository$"
    ):
        read_model(tmp_path)


def test_a_model_file_beside_the_version_folders_is_named_with_where_it_belongs(tmp_path):
    (tmp_path / "model.py").write_text("")

    with pytest.raises(InvalidArgumentError, match=r"such as 1/; move 'model\.py' to 1/model\.py"):
        read_model(tmp_path)
