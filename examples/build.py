"""Builds the models of the example repository that are not Python; what would not change is left alone."""

import argparse
from pathlib import Path

import onnx
from onnx import TensorProto, helper

import frameworks
from classifier import shapes

MODELS = Path(__file__).resolve().parent / "models"
WORDS = ("a", "bird", "cat", "dog", "runs", "sings", "sleeps", "the")
"""The vocabulary of `word_ids`; a word's place in this order is its id."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="?", type=Path, default=MODELS, help=f"the repository (default: {MODELS})")
    repository = parser.parse_args().models
    model, labels = shapes()
    write(repository / "shapes" / "labels.txt", "".join(f"{label}\n" for label in labels).encode())
    write(repository / "shapes" / "1" / "model.onnx", model.SerializeToString(deterministic=True))
    write(repository / "word_ids" / "1" / "model.onnx", word_ids().SerializeToString(deterministic=True))
    write(repository / "accumulator" / "1" / "model.onnx", accumulator().SerializeToString(deterministic=True))
    for example in frameworks.EXAMPLES:
        message = frameworks.build(example, repository)
        if message:
            print(message)


def word_ids() -> onnx.ModelProto:
    """Strings in, strings and numbers out: lower-cases words, drops the articles and looks the others up.

    `words` BYTES [1, n] gives `kept` BYTES [1, m] and `ids` INT64 [1, m], -1 for an unknown word.
    """
    nodes = [
        # the locale of that name is on every machine
        helper.make_node(
            "StringNormalizer", ["words"], ["kept"], case_change_action="LOWER", stopwords=["a", "the"], locale="C"
        ),
        helper.make_node(
            "LabelEncoder",
            ["kept"],
            ["ids"],
            domain="ai.onnx.ml",
            keys_strings=list(WORDS),
            values_int64s=list(range(len(WORDS))),
            default_int64=-1,
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "word_ids",
        [helper.make_tensor_value_info("words", TensorProto.STRING, [1, "words"])],
        [
            helper.make_tensor_value_info("kept", TensorProto.STRING, [1, "kept"]),
            helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "kept"]),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def accumulator() -> onnx.ModelProto:
    """The sum of a sequence so far, which is `INPUT` where a sequence starts and `INPUT` + `INPUT_STATE` elsewhere.

    All are INT32 [n, 1]; `OUTPUT` and `OUTPUT_STATE` are the same.
    """
    nodes = [
        helper.make_node("Cast", ["START"], ["starts"], to=TensorProto.BOOL),
        helper.make_node("Add", ["INPUT", "INPUT_STATE"], ["sum"]),
        helper.make_node("Where", ["starts", "INPUT", "sum"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    taken, produced = (
        [helper.make_tensor_value_info(name, TensorProto.INT32, ["n", 1]) for name in names]
        for names in (("INPUT", "INPUT_STATE", "START"), ("OUTPUT", "OUTPUT_STATE"))
    )
    graph = helper.make_graph(nodes, "accumulator", taken, produced)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write(path: Path, content: bytes) -> None:
    """Write the file unless it holds this already, so that a server that watches it sees no change."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
