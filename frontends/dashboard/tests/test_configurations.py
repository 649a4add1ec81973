"""The effective configuration, marked line by line."""

from pathlib import Path

from naiad_config.text import parse_text
from naiad_dashboard.configurations import is_in_store, marked_lines, written_config


def marks(effective, written):
    lines = marked_lines(parse_text(effective), parse_text(written) if written is not None else None)
    return {line.text.strip(): line.origin for line in lines if not line.closes}


def test_what_the_author_did_not_write_is_marked():
    result = marks(
        'name: "m" max_batch_size: 8 dynamic_batching { preferred_batch_size: 8 }',
        "max_batch_size: 8 dynamic_batching { }",
    )

    assert result == {
        'name: "m"': "completed",
        "max_batch_size: 8": "written",
        "dynamic_batching {": "written",
        "preferred_batch_size: [ 8 ]": "completed",
    }


def test_what_the_server_changed_is_marked():
    assert marks("max_batch_size: 4", "max_batch_size: 8") == {"max_batch_size: 4": "changed"}


def test_a_second_element_of_a_list_is_distinguished_from_the_first():
    effective = 'input { name: "A" } input { name: "B" }'

    lines = marked_lines(parse_text(effective), parse_text('input { name: "A" }'))

    assert [line.origin for line in lines] == ["written"] * 3 + ["completed"] * 3


def test_without_a_file_everything_was_completed(tmp_path):
    assert written_config([str(tmp_path)], "m") is None
    assert set(marks('name: "m"', None).values()) == {"completed"}


def test_the_file_in_the_models_folder_is_what_was_written(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.pbtxt").write_text("max_batch_size: 3")

    assert written_config([str(tmp_path)], "m").max_batch_size == 3
    assert written_config([str(tmp_path)], "../m") is None


def test_a_model_that_no_folder_has_is_in_a_store_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    roots = [str(tmp_path), "s3://bucket/models"]

    assert [is_in_store(roots, name) for name in ("m", "n")] == [False, True]
    assert not is_in_store(roots[:1], "n")
    assert written_config(roots, "n") is None
