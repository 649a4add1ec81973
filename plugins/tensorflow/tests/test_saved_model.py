"""SavedModels beyond the plain ones: tags, text, tables, tensors that have no datatype or no rank."""

import numpy as np
import pytest

from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import DataType

from .conftest import add_sub, tf, v1

SAVED = "model.savedmodel"


def signature(name):
    return f'parameters {{ key: "TF_SIGNATURE_DEF" value {{ string_value: "{name}" }} }}\n'


def lookup(words):
    """place = the line of an asset that holds the word, by a table that TensorFlow fills when it loads the model."""
    line, whole = tf.lookup.TextFileIndex.LINE_NUMBER, tf.lookup.TextFileIndex.WHOLE_LINE
    initializer = tf.lookup.TextFileInitializer(words, tf.string, whole, tf.int64, line)
    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string, name="word")])
    def serve(word):
        return {"place": module.table.lookup(word)}

    module.serve = serve
    return module


def unranked():
    module = tf.Module()
    module.serve = tf.function(lambda x: {"y": x * 2}, input_signature=[tf.TensorSpec(None, name="x")])
    return module


def written(path, tags=("serve",), as_text=False):
    """y = s where the sparse tensor s has values, as one signature, and y = x + 1 as the default one."""
    with tf.Graph().as_default(), v1.Session() as session:
        sparse, x = v1.sparse_placeholder(tf.float32, [None, 4]), v1.placeholder(tf.float32, [None, 4])
        dense = {"y": v1.saved_model.build_tensor_info(tf.sparse.to_dense(sparse))}
        info = {"s": v1.saved_model.build_tensor_info(sparse)}
        signatures = {
            "serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": x + 1}),
            "sparse": v1.saved_model.build_signature_def(info, dense, "sparse"),
        }
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(session, list(tags), signatures)
        builder.save(as_text=as_text)


def test_tables_are_filled_from_the_assets_of_the_model(workbench, tmp_path):
    (tmp_path / "words.txt").write_text("naiad\ndryad\n")
    tf.saved_model.save(lookup(str(tmp_path / "words.txt")), str(workbench.path(SAVED)))
    (tmp_path / "words.txt").unlink()

    answer = workbench.load().execute({"word": np.array([[b"dryad"], [b"oread"]], object)})

    assert answer["place"].tolist() == [[1], [-1]]


def test_a_graph_with_several_tags_is_named_by_all_of_them(workbench):
    written(workbench.path(SAVED), tags=("serve", "gpu"))

    with pytest.raises(InvalidArgumentError, match="has no graph with the tag 'serve', only with gpu,serve; name one"):
        workbench.load()
    served = workbench.load('parameters { key: "TF_GRAPH_TAG" value { string_value: "serve, gpu" } }')

    assert served.execute({"x": np.zeros((1, 4), np.float32)})["y"].tolist() == [[1, 1, 1, 1]]


def test_a_saved_model_in_text_is_read(workbench):
    written(workbench.path(SAVED), as_text=True)

    assert workbench.load().execute({"x": np.zeros((1, 4), np.float32)})["y"].tolist() == [[1, 1, 1, 1]]


def test_a_sparse_tensor_has_no_datatype_and_the_error_says_what_to_do(workbench):
    written(workbench.path(SAVED))
    tensors = """
        input { name: "s" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
        max_batch_size: 4
    """

    with pytest.raises(ConfigError) as raised:
        workbench.load(signature("sparse") + tensors)

    assert "input 's' " in str(raised.value)
    assert "float32 (coo_sparse)" in str(raised.value)
    assert "export the model with dense tensors" in str(raised.value)


def test_a_tensor_without_a_rank_is_served_with_the_dims_that_are_written(workbench):
    tf.saved_model.save(unranked(), str(workbench.path(SAVED)))
    dims = 'input { name: "x" dims: [ 2, 3 ] } output { name: "y" dims: [ 2, 3 ] }'

    with pytest.raises(ConfigError, match="no rank for 'x'"):
        workbench.complete()
    served = workbench.load(dims)

    assert served.config.input[0].data_type is DataType.TYPE_FP32
    assert served.execute({"x": np.ones((2, 3), np.float32)})["y"].tolist() == [[2, 2, 2]] * 2


def test_a_folder_is_no_graph(workbench, zoo):
    zoo(add_sub, workbench.path(SAVED))

    with pytest.raises(InvalidArgumentError, match=r"is a folder, as models of the platform tensorflow_savedmodel are"):
        workbench.load(f'platform: "tensorflow_graphdef" default_model_filename: "{SAVED}"')
