"""TorchScript models through the backend."""

import numpy as np
import pytest

import naiad_torch
from naiad import ModelInspector, PluginRegistry
from naiad.backend import Reply
from naiad.errors import ConfigError, InternalError, InvalidArgumentError
from naiad_testing.workbench import tensor_entry

from .written import ADD_SUB, ones


def numbered(*datatypes, dims="4", outputs=("FP32",)):
    entries = [tensor_entry("input", f"IN__{index}", datatype, dims) for index, datatype in enumerate(datatypes)]
    entries += [tensor_entry("output", f"OUT__{index}", datatype, dims) for index, datatype in enumerate(outputs)]
    return "max_batch_size: 8\n" + "".join(entries)


def test_arguments_are_found_by_their_names_in_any_order(workbench, models):
    config = "max_batch_size: 8\n" + tensor_entry("input", "b", "FP32", "4") + tensor_entry("input", "a", "FP32", "4")
    served = workbench.script(models.AddSub(), config + tensor_entry("output", "OUTPUT__1", "FP32", "4"))

    answer = served.execute({"b": ones(1, 1), "a": ones(1, 7)})

    assert answer["OUTPUT__1"].tolist() == [[6.0] * 4]


def test_numbers_in_names_are_indices(workbench, models):
    entries = [("input", "X__1"), ("input", "Y__0"), ("output", "D__1"), ("output", "S__0")]
    served = workbench.script(
        models.AddSub(),
        "max_batch_size: 8\n" + "".join(tensor_entry(kind, name, "FP32", "4") for kind, name in entries),
    )

    answer = served.execute({"X__1": ones(1, 1), "Y__0": ones(1, 7)})

    assert (answer["D__1"][0, 0], answer["S__0"][0, 0]) == (6.0, 8.0)


def test_other_names_are_taken_in_order_with_a_warning(workbench, models, caplog):
    entries = [("input", "left"), ("input", "right"), ("output", "sum"), ("output", "difference")]
    served = workbench.script(
        models.AddSub(),
        "max_batch_size: 8\n" + "".join(tensor_entry(kind, name, "FP32", "4") for kind, name in entries),
    )

    answer = served.execute({"left": ones(1, 7), "right": ones(1)})

    assert answer["difference"][0, 0] == 6.0
    assert [record.message for record in caplog.records if "taken in the order" in record.message]


def test_the_keys_of_a_dict_are_the_names_of_inputs(workbench, models):
    config = tensor_entry("input", "right", "FP32", "4") + tensor_entry("input", "left", "FP32", "4")
    served = workbench.script(
        models.FromDict(), "max_batch_size: 8\n" + config + tensor_entry("output", "O__0", "FP32", "4")
    )

    answer = served.execute({"right": ones(1, 1), "left": ones(1, 5)})

    assert answer["O__0"].tolist() == [[4.0] * 4]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("TwoDicts", "Multiple inputs of kind DictType were detected"),
        ("OfNumber", "An input of type 'int' was detected"),
    ],
)
def test_arguments_that_cannot_be_fed_are_refused(workbench, models, name, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        workbench.script(getattr(models, name)(), numbered("FP32", "FP32"))


def test_strings_go_in_and_out_as_lists(workbench, models):
    config = """max_batch_size: 8
input [{ name: "texts" data_type: TYPE_STRING dims: [ 1 ] reshape: { shape: [ ] } }]
output [{ name: "OUT__0" data_type: TYPE_INT64 dims: [ 1 ] reshape: { shape: [ ] } },
        { name: "OUT__1" data_type: TYPE_STRING dims: [ 1 ] reshape: { shape: [ ] } }]"""
    served = workbench.script(models.Lengths(), config)

    answer = served.execute(
        {"texts": np.array([b"ab", "é".encode()], object)},
        {"texts": np.array([b""], object)},
    )

    assert answer["OUT__0"].tolist() == [2, 2, 0]  # TorchScript counts bytes
    assert answer["OUT__1"].tolist() == [b"", "é".encode(), b"ab"]


def test_bytes_that_are_no_text_fail_their_own_request(workbench, models):
    config = """max_batch_size: 8
input [{ name: "texts" data_type: TYPE_STRING dims: [ 1 ] reshape: { shape: [ ] } }]
output [{ name: "OUT__0" data_type: TYPE_INT64 dims: [ 1 ] reshape: { shape: [ ] } }]"""
    served = workbench.script(models.Lengths(), config)

    answer = served.execute({"texts": np.array([b"\xff"], object)}, {"texts": np.array([b"abc"], object)})

    assert "not UTF-8" in str(answer[0])
    assert isinstance(answer[1], Reply)
    assert answer[1].outputs["OUT__0"].tolist() == [3]


def test_an_input_without_a_datatype_is_refused(workbench, models):
    config = "input { name: 'INPUT__0' dims: 4 }" + tensor_entry("output", "OUTPUT__0", "FP32", "4")

    with pytest.raises(ConfigError, match="unsupported datatype TYPE_INVALID for input 'INPUT__0' for model 'm'"):
        workbench.script(models.Identity(), config)


def test_strings_of_more_dimensions_are_refused(workbench, models):
    config = (
        "max_batch_size: 8\n"
        + tensor_entry("input", "texts", "STRING", "1")
        + tensor_entry("output", "O__0", "INT64", "1")
    )

    with pytest.raises(ConfigError, match="1 dimensional List of String"):
        workbench.script(models.Lengths(), config)


def test_a_tensor_is_handed_on_without_a_copy(workbench, models):
    served = workbench.script(models.Identity(), numbered("FP32"))
    sent = np.frombuffer(ones(1).tobytes(), np.float32).reshape(1, 4)

    answer = served.execute({"IN__0": sent})

    assert np.shares_memory(answer["OUT__0"], sent)


@pytest.mark.parametrize(
    ("name", "config", "reason"),
    [
        ("Scalar", numbered("FP32"), "'OUT__0' of model 'm' is a scalar which is not supported"),
        ("ListOfTensors", numbered("FP32", outputs=("FP32", "FP32")), None),
        (
            "Identity",
            numbered("FP32", outputs=("INT64",)),
            "expects datatype TYPE_INT64 for output 'OUT__0', model pro",
        ),
        ("Identity", numbered("FP32", outputs=("FP32", "FP32")), "This model has 1 outputs"),
    ],
)
def test_results_are_held_against_the_configuration(workbench, models, name, config, reason):
    served = workbench.script(getattr(models, name)(), config)

    if reason is None:
        assert list(served.execute({"IN__0": ones(1)})) == ["OUT__0", "OUT__1"]
    else:
        with pytest.raises(InvalidArgumentError, match=reason):
            served.execute({"IN__0": ones(1)})


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (numbered("FP32"), "expects 1 inputs"),
        (numbered("FP32", "FP32", "FP32"), "expects 3 inputs"),
        (numbered("FP32", "FP32").replace("IN__1", "IN__2"), "without a gap: 'IN__0' is 0, 'IN__2' is 2"),
        (numbered("FP32", "FP32").replace("IN__1", "X__0"), "'IN__0' and 'X__0' "),
        ("max_batch_size: 8\n", "at least one input, none were specified"),
    ],
)
def test_a_configuration_that_does_not_fit_the_model_is_refused(workbench, models, config, reason):
    with pytest.raises(InvalidArgumentError, match=reason):
        workbench.script(models.AddSub(), config)


def test_an_argument_with_a_default_need_not_be_configured(workbench, models):
    config = tensor_entry("input", "x", "FP32", "4") + tensor_entry("output", "OUT__0", "FP32", "4")
    served = workbench.script(models.WithDefault(), "max_batch_size: 8\n" + config)

    assert served.execute({"x": ones(1)})["OUT__0"].tolist() == [[2.0] * 4]


def test_a_file_that_is_no_torchscript_is_refused(workbench):
    workbench.path("model.pt").write_bytes(b"no model")

    with pytest.raises(InternalError, match=r"model 'm': .*TorchScript"):
        workbench.load(f'platform: "pytorch_libtorch" {ADD_SUB}')


def test_a_check_without_a_load_says_what_the_configuration_lacks(tmp_path):
    folder = tmp_path / "m" / "1"
    folder.mkdir(parents=True)
    (folder / "model.pt").touch()  # nothing is loaded

    problems = ModelInspector(PluginRegistry.of([naiad_torch])).problems([tmp_path])["m"]

    assert [text.partition(": ")[2].partition(":")[0] for text in problems] == ["input", "output"]


def test_nothing_is_completed_and_a_warning_says_so(workbench, models, caplog):
    with pytest.raises(ConfigError, match="at least one input"):
        workbench.script(models.AddSub(), "")

    assert any("skipping model configuration" in record.message for record in caplog.records)
