"""The memory of a model's weights, from the sizes of its files."""

import pytest

from naiad_onnx.weights import weight_bytes


def test_a_model_in_one_file_counts_as_that_file(models, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.dense(64, 32).SerializeToString())
    (tmp_path / "notes.txt").write_bytes(bytes(10_000))

    counted = weight_bytes(path)

    assert counted == path.stat().st_size
    assert 0 < counted - 64 * 32 * 4 < 500


def test_external_weights_count_and_other_files_do_not(models, tmp_path, save_with_external_weights):
    path = tmp_path / "model.onnx"
    save_with_external_weights(models.dense(64, 32), path)
    before = {each.name: each.stat().st_size for each in tmp_path.iterdir()}
    (tmp_path / "notes.txt").write_bytes(bytes(10_000))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "weights").write_bytes(bytes(10_000))

    assert len(before) > 1
    assert weight_bytes(path) == sum(before.values())


@pytest.mark.parametrize("name", ["folder/weights.bin", "w" * 200])
def test_external_weights_are_known_by_their_location(tmp_path, name):
    weights = tmp_path / name
    weights.parent.mkdir(exist_ok=True)
    weights.write_bytes(bytes(3_000))
    length = len(name)
    prefix = bytes([length]) if length < 128 else bytes([length % 128 + 128, length // 128])
    (tmp_path / "model.onnx").write_bytes(b"\x0a\x08location\x12" + prefix + name.encode())

    assert weight_bytes(tmp_path / "model.onnx") == 3_000 + (tmp_path / "model.onnx").stat().st_size


def test_an_empty_file_has_no_weights(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"1")

    assert weight_bytes(tmp_path / "model.onnx") == 0
