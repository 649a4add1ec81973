"""What a net as a whole is translated to, and what stops it."""

import numpy as np
import pytest

from naiad_caffe2.messages import parse_net
from naiad_caffe2.net import inputs_of
from naiad_caffe2.translation.arguments import INDIFFERENT, TranslationError

from .nets import Net, one

X = np.array([[-1, 2]], np.float32)


def test_blobs_may_be_written_over_again_and_again():
    net = Net("x")
    net.op("Relu", "x", "x")
    net.op("Scale", "x", "x", scale=2.0)
    net.op("Split", "x", "x y", axis=1)
    net.op("Add", "x y", "y")

    answer = net.gives("x", "y").run(x=X)

    assert (answer["x"].tolist(), answer["y"].tolist()) == ([[0]], [[4]])


def test_inputs_and_weights_may_be_outputs():
    net = Net("x")
    net.weights("w", np.array([7.0], np.float32))

    answer = net.gives("x", "w").run(x=X)

    assert (answer["x"].tolist(), answer["w"].tolist()) == (X.tolist(), [7])


def test_an_operator_without_a_use_is_left_out():
    net = Net("x")
    net.weights("w", np.ones(1000, np.float32))
    net.op("FlattenToVec", "w", "unused")
    net.op("Relu", "x", "y")

    model, weights = net.gives("y").translated(x=X).model(["y"])

    assert [node.op_type for node in model.graph.node] == ["Relu"]
    assert (len(model.graph.initializer), weights) == (0, {})


def test_large_weights_stand_beside_the_model(random):
    net = Net("x")
    matrix = random.standard_normal((300, 2)).astype(np.float32)
    net.weights("w", matrix)
    net.op("MatMul", "x w", "y", trans_b=1)

    model, weights = net.gives("y").translated(x=X).model(["y"])

    assert [(name, array.shape) for name, array in weights.items()] == [("w", (300, 2))]
    assert model.ByteSize() < 1000
    np.testing.assert_allclose(net.run(x=X)["y"], X @ matrix.T, rtol=1e-5)


def test_inputs_are_what_the_init_net_does_not_fill():
    net = Net("x", "y")
    net.weights("w", np.ones(1, np.float32))

    assert inputs_of(net.net, net.init) == ["x", "y"]
    assert inputs_of(net.net, net.init, {"w"}) == ["x", "y", "w"]


def test_every_operator_that_is_not_known_is_reported_with_its_position_up_to_five():
    net = Net("x")
    net.net.op.add(type="Snap", name="first", input=["x"], output=["y"])
    for index in range(6):
        net.op(f"Crackle{index}", "y", "y")

    with pytest.raises(TranslationError) as raised:
        net.gives("y").translated(x=X)

    assert "does not know operator 0 Snap ('first') of the net, operator 1 Crackle0 of the net, " in str(raised.value)
    assert "operator 4 Crackle3 of the net and 2 more; docs/caffe2.md lists" in str(raised.value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda net: net.op("Relu", "q", "y"), "operator 0 Relu of the net reads 'q', which no operator before it"),
        (lambda net: net.gives("z"), "external_output reads 'z', which no operator before it"),
        (lambda net: net.op("Relu", "x x", "y"), "operator 0 Relu of the net has 2 inputs; it takes 1"),
        (lambda net: net.op("Relu", "x", "y z"), "operator 0 Relu of the net has 2 outputs; it takes 1"),
        (lambda net: net.op("Sum", "", "y"), "operator 0 Sum of the net has 0 inputs; it takes 1 or more"),
        (lambda net: net.op("Conv", "x", "y"), "operator 0 Conv of the net has 1 inputs; it takes 2 to 3"),
        (lambda net: None, "the net has no external_output, so it gives nothing"),
    ],
)
def test_what_stops_a_net_is_reported_with_its_position(build, message):
    net = Net("x")
    build(net)

    with pytest.raises(TranslationError) as raised:
        net.translated(x=X)

    assert message in str(raised.value)


def test_the_position_in_the_init_net_is_reported():
    net = Net("x")
    net.init.op.add(type="Sqrt", input=["w"], output=["w"])

    with pytest.raises(TranslationError, match="operator 0 Sqrt of the init net reads 'w'"):
        net.gives("x").translated(x=X)


@pytest.mark.parametrize("name", sorted(INDIFFERENT))
def test_arguments_that_only_choose_an_implementation_are_skipped(name):
    assert one("Relu", X, **{name: 1}).tolist() == [[0, 2]]


@pytest.mark.parametrize(
    ("value", "message"), [("two", "must be a whole number"), (2.5, "must be a whole number"), ([1, 2], "whole number")]
)
def test_a_whole_number_is_asked_for(value, message):
    with pytest.raises(TranslationError, match=message):
        one("Softmax", X, axis=value)


def test_a_whole_number_may_be_written_as_a_number():
    assert one("Flatten", np.ones((2, 2, 2), np.float32), axis=2.0).shape == (4, 2)


def test_messages_with_fields_that_are_not_read_are_read():
    device = b"\x2a\x02\x08\x01"  # NetDef.device_option { device_type: 1 }

    net = parse_net(b"\x0a\x01n\x3a\x01x" + device)

    assert (net.name, list(net.external_input)) == ("n", ["x"])


@pytest.mark.parametrize("content", [b"\xff\xff", "naïve".encode("latin-1"), b"no net"])
def test_what_is_no_net_is_refused(content):
    with pytest.raises(ValueError, match="it is not a NetDef, neither in binary nor as text"):
        parse_net(content)
