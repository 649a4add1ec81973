"""The command `naiad-config check`."""

import pytest

from naiad_config.__main__ import main

from .rules import INPUT, OUTPUT


@pytest.fixture
def put(tmp_path):
    def put_model(name, config, file="config.pbtxt"):
        (tmp_path / name / "1").mkdir(parents=True, exist_ok=True)
        path = tmp_path / name / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(config)
        return path

    return put_model


def test_sound_models_are_listed(put, tmp_path, capsys):
    put("b", 'backend: "acme" ' + INPUT + OUTPUT)
    put("a", "")

    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "a: ok\nb: ok\n"


def test_every_problem_of_a_model_has_a_line_with_its_location(put, tmp_path, capsys):
    path = put("m", "max_batch_sise: 8\nbackend: 3\n")
    put("sound", "")

    assert main(["check", str(tmp_path)]) == 1
    first, one, two, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("m: problems", "sound: ok")
    assert one.startswith(f"  {path}:1:1: max_batch_sise: unknown key 'max_batch_sise'")
    assert two.startswith(f"  {path}:2:10: backend: ")


def test_a_variant_of_the_configuration_is_checked_where_it_exists(put, tmp_path, capsys):
    put("m", "")
    put("m", "what", "configs/edge.pbtxt")
    put("other", "")

    assert main(["check", str(tmp_path), "--model-config-name=edge"]) == 1
    assert "edge.pbtxt:1" in capsys.readouterr().out


def test_a_model_in_two_repositories_is_a_problem(put, tmp_path, capsys):
    put("one/m", "")
    put("two/m", "")

    assert main(["check", str(tmp_path / "one"), str(tmp_path / "two")]) == 1
    assert "the model is in more than one repository" in capsys.readouterr().out


def test_a_repository_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["check", str(tmp_path / "nothing")]) == 2
    assert "nothing' cannot be read" in capsys.readouterr().err
