"""Which tensor of a configuration is which of a model, and how a package describes its call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.errors import ConfigError, InvalidArgumentError
from naiad_torch.callspec import Node, read_call_spec
from naiad_torch.naming import Named, in_order, indices_of


def named(*names, path="input", numbered=False):
    return [Named(name, f"{path}[{index}]", numbered) for index, name in enumerate(names)]


def test_names_that_the_model_knows_count_before_numbers():
    assert indices_of(named("b__1", "a__0"), {"a__0": 1, "b__1": 0}, "m", "input") == {"b__1": 0, "a__0": 1}


def test_one_name_that_the_model_does_not_know_makes_numbers_or_the_order_count():
    assert indices_of(named("x__1", "a__0"), {"a__0": 5}, "m", "input") == {"x__1": 1, "a__0": 0}
    assert indices_of(named("x", "a"), {"a": 5}, "m", "input") == {"x": 0, "a": 1}
    assert in_order(named("x", "a"), {"a": 5})
    assert not in_order(named("x__0", "y__1"), {})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("control_input", "does not follow <name>__<index> naming convention"),
        ("state", "using sequence batching with s"),
    ],
)
def test_what_the_server_adds_must_have_a_number(path, message):
    tensors = [*named("x"), Named("START", f"sequence_batching.{path}", numbered=True)]

    with pytest.raises(ConfigError, match=message):
        indices_of(tensors, {}, "m", "input")


def test_what_the_server_adds_has_its_number_also_beside_names_of_another_kind():
    added = [Named("READY__2", "control", numbered=True), Named("START__1", "control", numbered=True)]

    assert indices_of([*named("x"), *added], {"x": 0}, "m", "input") == {"x": 0, "READY__2": 2, "START__1": 1}
    assert indices_of([*named("IN"), *added], {"x": 0}, "m", "input") == {"IN": 0, "READY__2": 2, "START__1": 1}


def test_what_the_server_adds_may_have_the_name_of_an_argument():
    tensors = [*named("IN__0"), Named("start", "control", numbered=True)]

    assert indices_of(tensors, {"x": 0, "start": 1}, "m", "input") == {"IN__0": 0, "start": 1}


def test_two_tensors_with_one_index_are_refused():
    tensors = [*named("first", "second"), Named("START__1", "control", numbered=True)]

    with pytest.raises(ConfigError, match="'second' and 'START__1' of model 'm' are both number 1"):
        indices_of(tensors, {}, "m", "input")


TREES = st.recursive(
    st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def written(tree):
    if tree is None:
        return {"type": None, "context": None, "children_spec": []}
    if isinstance(tree, dict):
        children = [written(each) for each in tree.values()]
        return {"type": "builtins.dict", "context": json.dumps(list(tree)), "children_spec": children}
    return {"type": "builtins.list", "context": "null", "children_spec": [written(each) for each in tree]}


def spec_of(tree, result=None):
    call = {"type": "builtins.tuple", "context": "null"}
    arguments = {**call, "children_spec": [written(tree)]}
    root = {**call, "children_spec": [arguments, written({"mask": None})]}
    return read_call_spec(json.dumps([1, root]), json.dumps([1, written(result)]))


@given(TREES, TREES)
def test_leaves_go_to_their_positions_and_come_back_in_order(tree, result):
    spec = spec_of(tree, result)

    arguments, keywords = spec.call(list(range(spec.input_count)))

    assert keywords == {"mask": spec.input_count - 1}
    assert spec_of(None, tree).results(arguments[0]) == list(range(spec.input_count - 1))
    assert len({name for names in spec.input_names() for name in names}) == spec.input_count + 1
    assert len(spec.output_names()) == spec.result.size


def test_a_result_of_another_form_is_reported():
    with pytest.raises(InvalidArgumentError, match="it gave a int where a list was expected"):
        spec_of(None, [None]).results(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('[2, {"type": null}]', "version 2"),
        ('[1, {"type": null}]', "not a tuple and a dict"),
        ('[1, {"type": "my.Class", "context": "", "children_spec": []}]', "it takes or gives a my.Class"),
    ],
)
def test_forms_that_are_not_known_are_refused(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        read_call_spec(text, json.dumps([1, written(None)]))


def test_a_leaf_has_no_children():
    assert Node().size == 1
