"""Packages that AOTInductor has compiled (`model.pt2`)."""

import re
import shutil
import zipfile

import pytest
import torch

from naiad.errors import ConfigError, InvalidArgumentError, UnsupportedError
from naiad_config import DataType
from naiad_testing.workbench import tensor_entry
from naiad_torch.compiled import CompiledArtefact, _two_choices
from naiad_torch.described import UNLIMITED, Described
from naiad_torch.generated import read_call_texts, reordered_argument

from .written import ADD_SUB, ones


def repack(compiled, workbench, change):
    """Put the package there, its files as `change(name, content)` has them, but for those that it has None for."""
    with zipfile.ZipFile(compiled) as sent, zipfile.ZipFile(workbench.path("model.pt2"), "w") as file:
        for entry in sent.infolist():
            content = change(entry.filename, sent.read(entry))
            if content is not None:
                file.writestr(entry, content)


def test_a_compiled_package_is_executed(workbench, compiled):
    shutil.copy(compiled, workbench.path("model.pt2"))
    config = ADD_SUB.replace('"a"', '"ARGS[0]"').replace('"b"', '"ARGS[1]"').replace("OUTPUT__0", "RESULT[0]")
    served = workbench.load(f'platform: "torch_aoti" {config.replace("OUTPUT__1", "RESULT[1]")}')

    answer = served.execute({"ARGS[0]": ones(1, 3), "ARGS[1]": ones(1)}, {"ARGS[0]": ones(2, 5), "ARGS[1]": ones(2)})

    assert answer["RESULT[0]"].tolist() == [[4.0] * 4, [6.0] * 4, [6.0] * 4]
    assert answer["RESULT[1]"].tolist() == [[2.0] * 4, [4.0] * 4, [4.0] * 4]


def test_a_compiled_package_needs_no_configuration(workbench, compiled):
    shutil.copy(compiled, workbench.path("model.pt2"))

    served = workbench.load()

    config = served.config
    assert (config.max_batch_size, config.dynamic_batching.preferred_batch_size) == (4, (4,))
    assert [(each.name, each.data_type, each.dims) for each in (*config.input, *config.output)] == [
        (name, DataType.TYPE_FP32, (4,)) for name in ("INPUT__0", "INPUT__1", "OUTPUT__0", "OUTPUT__1")
    ]
    assert served.execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})["OUTPUT__1"].tolist() == [[2.0] * 4]
    assert workbench.complete(settings={"default-max-batch-size": "100"}).max_batch_size == 64


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (ADD_SUB.replace("FP32", "INT32", 1), "expects datatype TYPE_INT32 for input 'INPUT__0', model provides"),
        (ADD_SUB.replace("[ 4 ]", "[ 5 ]", 1), r"'INPUT__0': .* \[4\] but .* \[5\], in model\.pt2"),
        (ADD_SUB.replace("size: 8", "size: 65"), "takes 64 rows at most"),
    ],
)
def test_a_configuration_that_contradicts_a_compiled_package_is_refused(workbench, compiled, config, expected):
    shutil.copy(compiled, workbench.path("model.pt2"))

    with pytest.raises(ConfigError, match=expected):
        workbench.load(config.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"'))


def test_a_compiled_package_never_sees_other_shapes_than_its_own(workbench, compiled):
    shutil.copy(compiled, workbench.path("model.pt2"))
    served = workbench.load('input [{ name: "INPUT__0" data_type: TYPE_FP32 dims: [ -1 ] }]')

    with pytest.raises(InvalidArgumentError, match=r"'INPUT__0' .* \[1,2\], and model.pt2"):
        served.execute({"INPUT__0": ones(1, columns=2), "INPUT__1": ones(1)})


def test_a_package_for_a_gpu_is_not_given_inputs_in_host_memory(compiled):
    artefact = CompiledArtefact(compiled, "m", "", "", releases_lock=False)
    artefact._kind = "cuda"  # as its metadata would say, on a machine with a GPU

    with pytest.raises(InvalidArgumentError, match=r"KIND_MODEL gets its inputs in host memory, .*; use KIND_GPU"):
        artefact.open("")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_package_for_a_gpu_is_reported_at_load_where_there_is_none(workbench, compiled):
    repack(compiled, workbench, lambda name, content: content.replace(b'_DEVICE_KEY": "cpu"', b'_DEVICE_KEY": "cuda"'))

    with pytest.raises(UnsupportedError, match=r"'model\.pt2' was compiled for cuda, and this PyTorch .* finds no GPU"):
        workbench.load()


def test_a_compiled_package_without_its_source_is_served_with_a_configuration(workbench, compiled, caplog):
    repack(compiled, workbench, lambda name, content: None if name.endswith(".cpp") else content)

    with pytest.raises(ConfigError, match="at least one input"):
        workbench.load()
    config = ADD_SUB.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"')
    answer = workbench.load(config).execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})

    assert any("skipping model configuration auto-complete for 'm'" in record.message for record in caplog.records)
    assert answer["OUTPUT__0"].tolist() == [[4.0] * 4]


@pytest.fixture
def public_only(monkeypatch):
    """Another version of PyTorch, whose packages have no more than what is public."""
    load = torch._inductor.aoti_load_package

    def load_package(path, **options):
        package = load(path, **options)
        return lambda *arguments, **keywords: package(*arguments, **keywords)

    monkeypatch.setattr(torch, "__version__", "2.14.0+cpu")
    monkeypatch.setattr(torch._inductor, "aoti_load_package", load_package)


def test_a_version_of_pytorch_that_is_not_tested_is_used_by_its_public_parts(workbench, compiled, public_only):
    shutil.copy(compiled, workbench.path("model.pt2"))

    served = workbench.load()
    answer = served.execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})

    assert [each.name for each in served.config.output] == ["OUTPUT__0", "OUTPUT__1"]
    assert (answer["OUTPUT__0"].tolist(), answer["OUTPUT__1"].tolist()) == ([[4.0] * 4], [[2.0] * 4])


def test_a_version_of_pytorch_that_is_not_tested_needs_the_source_of_a_package(workbench, compiled, public_only):
    repack(compiled, workbench, lambda name, content: None if name.endswith(".cpp") else content)

    with pytest.raises(
        UnsupportedError, match=r"has no C\+\+ source .* PyTorch 2\.14\.0\+cpu needs; .* install torch 2\."
    ):
        workbench.load()


def test_the_call_specification_in_the_source_is_that_of_the_loader(compiled):
    with zipfile.ZipFile(compiled) as package:
        sources = [package.read(name).decode() for name in package.namelist() if name.endswith(".cpp")]

    texts = [texts for source in sources if (texts := read_call_texts(source)) is not None]

    assert texts == [tuple(torch._inductor.aoti_load_package(str(compiled)).loader.get_call_spec())]


def second_input(sizes):
    """A change of the package after which its source says that the second input has these sizes."""
    stride = re.compile(rb"(assert_size_stride\(arg1_1, )\{(s\d+), 4L\}")
    return lambda name, content: stride.sub(rb"\1{" + sizes + rb"}", content) if name.endswith(".cpp") else content


def test_a_compiled_package_never_sees_other_sizes_than_those_that_follow_from_others(workbench, compiled):
    repack(compiled, workbench, second_input(rb"2L*\2, 4L"))
    config = ADD_SUB.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"')

    with pytest.raises(InvalidArgumentError, match=r"'INPUT__1' .* \[1,4\], and model.pt2 takes \[2\*s\d+,4\]"):
        workbench.load(config).execute({"INPUT__0": ones(1), "INPUT__1": ones(1)})


def test_a_compiled_package_with_a_size_that_cannot_be_checked_is_refused(workbench, compiled):
    repack(compiled, workbench, second_input(rb"div_floor_integer(\2, 2L), 4L"))

    with pytest.raises(UnsupportedError, match="size of INPUT__1 that is no sum, difference or product of other sizes"):
        workbench.load()


def test_a_compiled_package_that_reads_another_order_of_memory_is_refused(workbench, compiled):
    strides = re.compile(rb"(assert_size_stride\(arg1_1, \{s\d+, 4L\}, )\{4L, 1L\}")
    repack(compiled, workbench, lambda name, content: strides.sub(rb"\1{1L, 2L}", content))

    with pytest.raises(UnsupportedError, match="compiled for INPUT__1 in another order of memory than C's"):
        workbench.load()


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("{2L, 3L, 4L, 5L}, {60L, 20L, 5L, 1L}", ""),
        ("{2L, 3L, 4L, 5L}, {60L, 1L, 15L, 3L}", "INPUT__0"),
        ("{s0, 3L, s1, s2}, {3L*s1*s2, 1L, 3L*s2, 3L}", "INPUT__0"),
        ("{s0, 3L, s1, s2}, {3L*s1*s2, s1*s2, s2, 1L}", ""),
        ("{2L, 1L, 5L}, {5L, 1L, 1L}", ""),
    ],
)
def test_the_order_of_memory_is_read_from_the_source(form, name):
    check = "static void check_input_0(X) {\nConstantHandle arg0_1 = ConstantHandle(y);\n}\n"

    assert reordered_argument(f"{check}assert_size_stride(arg0_1, {form});") == name


def test_a_compiled_package_whose_sizes_follow_from_others_does_not_show_its_outputs(workbench, compiled, caplog):
    repack(compiled, workbench, lambda name, content: re.sub(rb"\{s\d+, 4L\}", b"{2L*s1, 4L}", content))
    outputs = ADD_SUB[ADD_SUB.index("output") :]

    served = workbench.load(outputs)
    assert [each.name for each in served.config.input] == ["INPUT__0", "INPUT__1"]

    with pytest.raises(ConfigError, match="at least one input"):
        workbench.load()
    assert any("skipping model configuration" in record.message for record in caplog.records)


def test_a_compiled_package_never_sees_more_rows_than_it_was_compiled_for(workbench, compiled):
    limits = re.compile(rb"(_size\[0\] > )64\)")
    repack(compiled, workbench, lambda name, content: limits.sub(rb"\g<1>2)", content) if "cpp" in name else content)
    config = ADD_SUB.replace("max_batch_size: 8", "").replace("[ 4 ]", "[ -1, 4 ]")
    served = workbench.load(config.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"'))

    assert served.execute({"INPUT__0": ones(2), "INPUT__1": ones(2)})["OUTPUT__0"].shape == (2, 4)
    with pytest.raises(InvalidArgumentError, match=r"'INPUT__0' .* \[3,4\], and model.pt2 takes at most 2 in dim 0"):
        served.execute({"INPUT__0": ones(3), "INPUT__1": ones(3)})


@pytest.mark.parametrize(
    ("tensors", "few", "many"),
    [
        ([Described("x", "float32", ("s0", "s1"), (2, 16), (8, UNLIMITED))], (2, 17), (3, 19)),
        ([Described("x", "float32", ("s0", "s1", "s2"), (2, 2, 2), (8, 9, 4))], (2, 3, 3), (3, 5, 4)),
        (
            [Described("x", "float32", ("s0",), (2,), (64,)), Described("y", "float32", ("s1",), (2,), (3,))],
            (2, 2),
            (3, 3),
        ),
        (
            [Described("x", "float32", ("s0",), (2,), (64,)), Described("y", "float32", ("s1",), (2,), (2,))],
            (2, 2),
            (3, 2),
        ),
    ],
)
def test_outputs_are_seen_with_two_sizes_of_each_dim_that_varies(tensors, few, many):
    assert [tuple(sizes.values()) for sizes in _two_choices(tensors)] == [few, many]


def test_two_instances_of_a_compiled_package_do_not_share_memory(workbench, compiled):
    shutil.copy(compiled, workbench.path("model.pt2"))
    config = ADD_SUB.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"')
    served = workbench.load(f'platform: "torch_aoti" {config} instance_group [{{ kind: KIND_CPU count: 2 }}]')

    first = served.execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})
    served.instances.reverse()
    second = served.execute({"INPUT__0": ones(1, 9), "INPUT__1": ones(1)})

    assert (first["OUTPUT__0"][0, 0], second["OUTPUT__0"][0, 0]) == (4.0, 10.0)


def test_wrong_numbers_of_tensors_are_refused(workbench, compiled):
    shutil.copy(compiled, workbench.path("model.pt2"))
    one = tensor_entry("input", "INPUT__0", "FP32", "4")

    with pytest.raises(InvalidArgumentError, match="model provides 2"):
        workbench.load(f'platform: "torch_aoti" {one}' + tensor_entry("output", "OUTPUT__0", "FP32", "4"))
    two = one + tensor_entry("input", "INPUT__1", "FP32", "4") + tensor_entry("output", "OUTPUT__2", "FP32", "4")
    with pytest.raises(InvalidArgumentError, match=r"The output OUTPUT__2 .* This model has 2 outputs"):
        workbench.load(f'platform: "torch_aoti" {two}')
