"""Behaviours of the model repository: load and unload by request, with configurations and files, and refusals."""

import json

from naiad_testing.frontends.calls import Call
from naiad_testing.frontends.inference import SUMS
from naiad_testing.frontends.refusals import refusal
from naiad_testing.frontends.stage import Served, Stage
from naiad_testing.frontends.table import Table

REPOSITORY = Table()
SUITE = '{"backend": "suite"}'


def states(served: Served, name: str) -> list[tuple[str, str]]:
    """The versions of a model in the index, with their states."""
    return [(each.get("version", ""), each.get("state", "")) for each in served.adapter.index() if each["name"] == name]


@REPOSITORY.behaviour
def models_are_unloaded_and_loaded(stage: Stage) -> None:
    with stage.serving() as served:
        adapter = served.adapter
        adapter.unload("add_sub")
        unloaded, ready = states(served, "add_sub"), adapter.model_ready("add_sub")
        message = refusal(stage, lambda: adapter.infer(Call("add_sub", SUMS)), "ModelNotReadyError")
        adapter.unload("add_sub", dependents=True)
        adapter.load("add_sub")

        assert unloaded in ([("1", "UNLOADING")], [("1", "UNAVAILABLE")])
        assert (ready, adapter.model_ready("add_sub")) == (False, True)
        assert "unload" in message
        assert states(served, "add_sub") == [("1", "READY")]


@REPOSITORY.behaviour
def the_index_lists_folders_that_were_never_loaded(stage: Stage) -> None:
    with stage.serving() as served:
        served.backend.write(served.repository, "beheld")

        assert states(served, "beheld") == [("", "")]


@REPOSITORY.behaviour
def a_configuration_of_the_request_counts_until_the_next_plain_load(stage: Stage) -> None:
    with stage.serving() as served:
        adapter = served.adapter
        folder = served.backend.write(served.repository, "plain", "max_batch_size: 2")
        sizes = []
        for config in (None, '{"backend": "suite", "maxBatchSize": 12}', None):
            adapter.load("plain", config)
            sizes.append(adapter.model_config("plain")["max_batch_size"])

        assert sizes == [2, 12, 2]
        assert [each["name"] for each in adapter.model_config("plain")["input"]] == ["INPUT"]
        assert folder.exists()


@REPOSITORY.behaviour
def a_model_may_come_whole_with_the_request(stage: Stage) -> None:
    with stage.serving() as served:
        files = {"file:7/weights": b"\x00\x01", "file:8/weights": b"\xff"}
        config = json.dumps({"backend": "suite", "version_policy": {"all": {}}})

        served.adapter.load("sent", config, files)

        assert served.adapter.model_metadata("sent")["versions"] == ["7", "8"]
        assert served.adapter.model_ready("sent", "7")
        assert not (served.repository / "sent").exists()


@REPOSITORY.behaviour
def a_load_that_fails_says_why_and_harms_nothing(stage: Stage) -> None:
    with stage.serving() as served:
        served.backend.load_error = ValueError("its weights are torn")
        message = refusal(stage, lambda: served.adapter.load("add_sub", SUITE), "InvalidArgumentError")
        served.backend.load_error = None

        assert message.startswith("failed to load 'add_sub', ")
        assert "its weights are torn" in message
        assert served.adapter.model_ready("add_sub")
        assert served.adapter.infer(Call("add_sub", SUMS)).model == "add_sub"


LOADS = {
    "unknown model": ("dream", None, None, "NotFoundError", "dream"),
    "invalid name": ("\0", None, None, "InvalidArgumentError", "path traversal"),
    "endless name": ("x" * 5000, None, None, "InvalidArgumentError", "longer"),
    "path in a file": ("new", SUITE, {"file:../../x": b""}, "InvalidArgumentError", "file"),
    "endless file name": ("new", SUITE, {"file:1/" + "x" * 5000: b""}, "InvalidArgumentError", "file"),
    "files without a configuration": ("add_sub", None, {"file:1/x": b""}, "InvalidArgumentError", "'config'"),
    "empty configuration": ("add_sub", " ", None, "InvalidArgumentError", "'config' is empty"),
    "broken configuration": ("add_sub", "{", None, "InvalidArgumentError", ""),
}


@REPOSITORY.cases(LOADS)
def a_load_that_cannot_be_is_refused(
    stage: Stage, name: str, config: str | None, files: dict[str, bytes] | None, error: str, fact: str
) -> None:
    adapter = stage.shared.adapter

    assert fact in refusal(stage, lambda: adapter.load(name, config, files), error)
    assert adapter.model_ready("add_sub")
    assert not list(stage.folder.glob("x*"))


@REPOSITORY.behaviour
def models_are_loaded_by_request_in_explicit_mode_alone(stage: Stage) -> None:
    with stage.serving({"model-control-mode": "none", "load-model": ()}) as served:
        for action in (served.adapter.load, served.adapter.unload):
            assert "--model-control-mode" in refusal(stage, lambda: action("add_sub"), "UnavailableError")  # noqa: B023
        assert served.adapter.infer(Call("add_sub", SUMS)).version == "1"
