"""Graphs in a file: inputs with defaults, outputs that are not the first, operators of the user's own."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from naiad.errors import ConfigError

from .conftest import tf, v1

GRAPHDEF = 'platform: "tensorflow_graphdef"\n'


def output(name, dims="4", datatype="FP32"):
    return f'output {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }}\n'


@pytest.fixture
def graph(workbench):
    """OUT = IN * SCALE, which is 3 unless it is given; HALVES is IN in two pieces."""
    with tf.Graph().as_default() as definition:
        sent = v1.placeholder(tf.float32, [None, 4], name="IN")
        scale = v1.placeholder_with_default(tf.constant([3.0]), [None], name="SCALE")
        tf.multiply(sent, scale, name="OUT")
        tf.split(sent, 2, axis=1, name="HALVES")
        workbench.path("model.graphdef").write_bytes(definition.as_graph_def().SerializeToString())


def test_a_placeholder_with_a_default_need_not_be_given(workbench, graph):
    rows = np.ones((1, 4), np.float32)

    served = workbench.load(GRAPHDEF + output("OUT"))
    optional = workbench.load(
        GRAPHDEF
        + output("OUT", "-1, 4")
        + """input { name: "IN" data_type: TYPE_FP32 dims: [ -1, 4 ] }
        input { name: "SCALE" data_type: TYPE_FP32 dims: [ -1 ] optional: true }"""
    )

    assert [each.name for each in served.config.input] == ["IN"]
    assert served.execute({"IN": rows})["OUT"].tolist() == [[3, 3, 3, 3]]
    assert optional.execute({"IN": rows})["OUT"].tolist() == [[3, 3, 3, 3]]
    assert optional.execute({"IN": rows, "SCALE": np.float32([5])})["OUT"].tolist() == [[5, 5, 5, 5]]


def test_an_output_that_is_not_the_first_of_its_node_has_its_index_in_the_name(workbench, graph):
    served = workbench.load(GRAPHDEF + output("HALVES:1", "2"))

    assert served.execute({"IN": np.float32([[1, 2, 3, 4]])})["HALVES:1"].tolist() == [[3, 4]]
    with pytest.raises(ConfigError, match="unexpected inference output 'HALVES:2', allowed outputs are: "):
        workbench.load(GRAPHDEF + output("HALVES:2", "2"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_libraries_of_the_user_are_loaded_before_the_graph_is_read(workbench, graph):
    """One that registers an operator takes a minute to compile; TensorFlow loads this one just so."""
    source = '#include <stdlib.h>\n__attribute__((constructor)) static void in(void) { setenv("OPS", "loaded", 1); }\n'
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(workbench.directory / "ops.so")]
    subprocess.run(command, input=source, text=True, check=True)
    environment = ctypes.CDLL(None)
    environment.getenv.restype = ctypes.c_char_p

    workbench.load(GRAPHDEF + 'model_operations { op_library_filename: "ops.so" }' + output("OUT"))

    assert environment.getenv(b"OPS") == b"loaded"
