"""The life of a library: its setup calls, how instances come and go, and what becomes of its file meanwhile."""

import gc
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from naiad.errors import ConfigError
from naiad_testing.workbench import batch_of

X = {"X": np.ones(2, np.float32)}
X_TO_Y = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }'
SAYS = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "SETUP" data_type: TYPE_STRING dims: 1 }'


def number(name):
    return f'{X_TO_Y} output {{ name: "{name}" data_type: TYPE_INT64 dims: 1 }}'


def describe_error(model):
    (reply,) = model.execute(X)
    return reply.outputs["SETUP"].item().decode()


def test_an_instance_is_notified_all_about_its_model(workbench, compiler):
    model = workbench.serve(compiler.library("telling.c"), SAYS, {"flavour": "süß"})

    *where, config, model_directory, version_directory, flavour, none = describe_error(model).split("|")

    assert where == ["m", "1", "m_0", "CPU", "0"]
    assert json.loads(config)["output"][0]["name"] == "SETUP"
    assert (model_directory, version_directory) == (str(workbench.directory), str(workbench.directory / "1"))
    assert (flavour, none) == ("süß", "NULL")


def test_an_instance_on_a_gpu_is_reported_which(workbench, compiler):
    workbench.gpus = 2
    library = compiler.library("telling.c")

    model = workbench.serve(library, f"{SAYS} instance_group {{ kind: KIND_GPU gpus: 1 }}", {"flavour": ""})

    assert describe_error(model).split("|")[3:5] == ["GPU", "1"]


def test_a_library_is_reported_that_a_sequence_is_over(workbench, compiler):
    model = workbench.serve(compiler.library("telling.c"), SAYS, {"flavour": ""})

    model.instance.sequence_ended(7, "end")
    first = describe_error(model)
    model.instance.sequence_ended("ann", "idle")

    assert (first, describe_error(model)) == ("7 ended: end", "ann ended: idle")


def test_a_library_that_does_not_listen_is_not_reported(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"))

    assert not hasattr(model.instance, "sequence_ended")


def test_instances_are_initialized_and_finalized_each_for_itself(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), f"{number('ALIVE')} instance_group {{ count: 3 }}")

    before = model.execute(X)[0].outputs["ALIVE"].tolist()
    model.instances[1].close()
    after = model.execute(X)[0].outputs["ALIVE"].tolist()
    for each in model.instances[::2]:
        each.close()

    assert (before, after) == ([3], [2])


def test_an_instance_keeps_what_is_its_own(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"), f"{number('CALLS')} instance_group {{ count: 2 }}")
    first, second = model.instances

    calls = [each.execute(batch_of(X, batching=False))[0].outputs["CALLS"].item() for each in (first, first, second)]

    assert calls == [1, 2, 1]


def test_two_instances_execute_at_the_same_time(workbench, compiler):
    config = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "MET" data_type: TYPE_INT64 dims: 1 }'
    library = compiler.library("meeting.c", "-pthread")
    model = workbench.serve(library, f"{config} instance_group {{ count: 2 }}")

    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(each.execute, batch_of(X, batching=False)) for each in model.instances]
        met = [run.result()[0].outputs["MET"].item() for run in runs]

    assert met == [2, 2]


def test_a_library_that_asks_too_late_gets_nothing(workbench, compiler, caplog):
    model = workbench.serve(compiler.library("late.c"), f"max_batch_size: 1 {X_TO_Y}")
    model.execute({"X": np.ones((1, 2), np.float32)})

    with caplog.at_level(logging.ERROR):
        model.instance.close()
    del model
    gc.collect()

    assert [record.getMessage() for record in caplog.records] == [
        f"'libcustom.so' called {function} for a batch that it does not execute; a batch is over when naiad_execute "
        "returns"
        for function in ("naiad_output", "naiad_fail")
    ]


def test_a_file_that_is_written_over_while_it_is_served_does_no_harm(workbench, compiler):
    model = workbench.serve(compiler.library("echo.c"))
    path = workbench.path("libcustom.so")

    path.write_bytes(bytes(path.stat().st_size))

    assert model.execute(X)[0].outputs["Y"].tolist() == [1, 1]


def test_a_file_that_has_changed_is_loaded_anew_and_one_that_has_not_is_not(workbench, compiler):
    config = number("ALIVE")
    first = workbench.serve(compiler.library("echo.c"), config)

    same = workbench.load(config).execute(X)[0].outputs["ALIVE"].tolist()
    path = workbench.path("libcustom.so")
    path.write_bytes(path.read_bytes() + b"\0")
    changed = workbench.load(config).execute(X)[0].outputs["ALIVE"].tolist()

    assert (same, changed) == ([2], [1])
    assert first.execute(X)[0].outputs["ALIVE"].tolist() == [2]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("model_transaction_policy { decoupled: true }", "a shared library answers each request once"),
        (
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "X" }',
            "batch_input: a shared library sees each request with its own shapes, and needs none of it (leave",
        ),
        (
            'batch_output { target_name: "Y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }',
            "batch_output: a shared library sees each request with its own shapes",
        ),
    ],
)
def test_what_a_library_cannot_do_is_refused_when_it_is_loaded(workbench, compiler, config, message):
    with pytest.raises(ConfigError) as refused:
        workbench.serve(compiler.library("echo.c"), f"{X_TO_Y} {config}")

    assert message in str(refused.value)
