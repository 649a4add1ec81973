"""Builds the classifier `shapes`: a small convolutional network with random features and a fitted last layer.

Two layers of random filters, pooled over the whole picture, tell circles from squares and triangles well enough that
one linear layer on top, fitted by least squares, is all the training there is: it takes a second and no framework.
"""

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from drawing import LABELS, SIDE, draw

_FILTERS = (16, 64)
_FEATURES = 2 * _FILTERS[1]
_PICTURES = 1800
_REGULARISATION = 0.1
_SHARPNESS = 12.0
"""What scores around 0 and 1 are multiplied with before they become probabilities."""

Weights = dict[str, np.ndarray]


def shapes() -> tuple[onnx.ModelProto, Sequence[str]]:
    """The model and the labels of its classes.

    `image` UINT8 [batch, 32, 32, 3] gives `probabilities` FP32 [batch, 9]. Raises RuntimeError when the fitted model
    names fewer than 97 of 100 new pictures right.
    """
    chance = np.random.default_rng(20)
    weights = _random_filters(chance)
    pictures, classes = _pictures(_PICTURES, chance)
    weights |= _fitted(_run(_model(_FEATURE_NODES, weights, "features", _FEATURES), pictures), classes)
    model = _model((*_FEATURE_NODES, *_CLASS_NODES), weights, "probabilities", len(LABELS))
    new, truth = _pictures(450, chance)
    right = float((_run(model, new).argmax(axis=1) == truth).mean())
    if right < 0.97:
        raise RuntimeError(f"the classifier names only {right:.1%} of new pictures right")
    return model, LABELS


_FEATURE_NODES = (
    helper.make_node("Cast", ["image"], ["pixels"], to=TensorProto.FLOAT),
    helper.make_node("Mul", ["pixels", "one_255th"], ["scaled"]),
    helper.make_node("Transpose", ["scaled"], ["channels_first"], perm=[0, 3, 1, 2]),
    helper.make_node("Conv", ["channels_first", "filters0", "bias0"], ["conv0"], pads=[2, 2, 2, 2]),
    helper.make_node("Relu", ["conv0"], ["relu0"]),
    helper.make_node("MaxPool", ["relu0"], ["pool0"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Conv", ["pool0", "filters1", "bias1"], ["conv1"], pads=[2, 2, 2, 2]),
    helper.make_node("Relu", ["conv1"], ["relu1"]),
    helper.make_node("GlobalAveragePool", ["relu1"], ["average"]),
    helper.make_node("GlobalMaxPool", ["relu1"], ["peak"]),
    helper.make_node("Concat", ["average", "peak"], ["pooled"], axis=1),
    helper.make_node("Flatten", ["pooled"], ["features"]),
)
_CLASS_NODES = (
    helper.make_node("Gemm", ["features", "fitted", "offset"], ["scores"]),
    helper.make_node("Softmax", ["scores"], ["probabilities"]),
)


def _random_filters(chance: np.random.Generator) -> Weights:
    weights: Weights = {"one_255th": np.array(1 / 255)}
    depth = 3
    for layer, count in enumerate(_FILTERS):
        weights[f"filters{layer}"] = chance.standard_normal((count, depth, 5, 5)) / np.sqrt(depth * 25)
        weights[f"bias{layer}"] = chance.standard_normal(count) * 0.1
        depth = count
    return weights


def _pictures(count: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    classes = np.arange(count) % len(LABELS)
    return np.stack([draw(LABELS[each], chance) for each in classes]), classes


def _fitted(features: np.ndarray, classes: np.ndarray) -> Weights:
    """The linear layer that maps features to the class by ridge regression, on features of mean 0 and deviation 1."""
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-6
    ones = np.ones((len(features), 1))
    rows = np.hstack([(features - mean) / deviation, ones])
    target = rows.T @ np.eye(len(LABELS))[classes]
    solved = np.linalg.solve(rows.T @ rows + _REGULARISATION * np.eye(rows.shape[1]), target) * _SHARPNESS
    fitted = solved[:-1] / deviation[:, None]
    return {"fitted": fitted, "offset": solved[-1] - mean @ fitted}


def _model(nodes: Sequence[onnx.NodeProto], weights: Weights, output: str, width: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, ["batch", SIDE, SIDE, 3])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", width])],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _run(model: onnx.ModelProto, pictures: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"image": pictures})
    return np.asarray(answer, dtype=float)
