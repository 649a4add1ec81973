"""Loading models: complete ones, and folders that are broken in every way, each on its own."""

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.backend import ModelContext, Placement
from naiad.config.text import parse_text
from naiad.errors import ModelNotReadyError, NotFoundError
from naiad.reports import IndexEntry, ModelMetadata, TensorMetadata
from naiad.testing.backends import FakeBackend

from .serving import FLOATS, Steered, SteeredModel, request, running, write_model


async def reason_of(server: Server, name: str = "broken") -> str:
    """Why that model is UNAVAILABLE, while the good model beside it serves."""
    index = {entry.name: entry for entry in server.index()}
    response = await server.infer(request("good", 1))
    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert index["good"] == IndexEntry("good", 1, "READY")
    assert index[name].state == "UNAVAILABLE"
    with pytest.raises(ModelNotReadyError) as caught:
        await server.infer(request(name, 1))
    assert index[name].reason in str(caught.value)
    ready = server.ready()
    assert not ready.ready
    assert index[name].reason in ready.reasons[0]
    return index[name].reason


# What a loaded model is


async def test_a_backend_gets_all_it_needs_to_load(tmp_path: Path) -> None:
    backend = Steered()
    folder = write_model(tmp_path, "m", FLOATS, versions=(3,))

    async with running(tmp_path, backend, backend_config=("steered,a=1", "b=2", "other,c=3")):
        (context,) = backend.contexts

    assert (context.config.name, context.version) == ("m", 3)
    assert (context.model_directory, context.version_directory) == (folder, folder / "3")
    assert context.settings == {"a": "1", "b": "2"}
    assert context.config.instance_group[0].name == "m"


@pytest.mark.parametrize("setting", ["nothing", "=1", "steered,", "steered,=1"])
async def test_a_backend_setting_that_makes_no_sense_is_refused(tmp_path: Path, setting: str) -> None:
    with pytest.raises(Exception, match=r"must be \[BACKEND,\]KEY=VALUE"):
        async with running(tmp_path, backend_config=(setting,)):
            pass


async def test_the_configuration_is_shown_normalised(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        config = server.model_config("m")

    assert (config.name, config.backend) == ("m", "fake")
    assert config.version_policy is not None
    assert config.version_policy.latest is not None
    assert [(group.name, group.count) for group in config.instance_group] == [("m", 1)]


async def test_the_metadata_names_the_versions_that_serve_and_the_shapes_with_their_batch(tmp_path: Path) -> None:
    backend = Steered()
    optional = 'input { name: "BIAS" data_type: TYPE_STRING dims: [ 2 ] optional: true }'
    write_model(tmp_path, "m", f"max_batch_size: 4 version_policy {{ all {{ }} }} {FLOATS} {optional}", versions=(1, 2))

    async with running(tmp_path, backend) as server:
        whole, first = server.model_metadata("m"), server.model_metadata("m", 1)

    assert whole == ModelMetadata(
        "m",
        (1, 2),
        "steered",
        (TensorMetadata("INPUT", "FP32", (-1, -1)), TensorMetadata("BIAS", "BYTES", (-1, 2), optional=True)),
        (TensorMetadata("OUTPUT", "FP32", (-1, -1)),),
    )
    assert first == replace(whole, versions=(1,))


async def test_labels_are_the_lines_of_their_file(tmp_path: Path) -> None:
    backend = Steered()
    folder = write_model(tmp_path, "m", FLOATS)
    text = (folder / "config.pbtxt").read_text().replace('"OUTPUT"', '"OUTPUT" label_filename: "labels.txt"')
    (folder / "config.pbtxt").write_text(text)
    (folder / "labels.txt").write_text("cat\ndög\n", encoding="utf-8")

    async with running(tmp_path, backend) as server:
        assert server.labels("m", "OUTPUT") == ("cat", "dög")
        assert server.labels("m", "OTHER") == ()
        with pytest.raises(NotFoundError):
            server.labels("ghost", "OUTPUT")


async def test_the_backend_completes_what_is_left_open(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert [each.name for each in server.model_config("m").input] == ["INPUT"]


async def test_completion_can_be_turned_off(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", FLOATS)

    async with running(tmp_path, backend, disable_auto_complete_config=True) as server:
        assert server.ready().ready

    assert backend.events[0] == "load m 1"


async def test_without_completion_a_partial_configuration_is_taken_as_it_is(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend, disable_auto_complete_config=True) as server:
        assert server.model_config("m").input == ()


async def test_a_model_needs_no_configuration_where_its_files_tell(tmp_path: Path) -> None:
    floats = parse_text(FLOATS)
    backend = Steered(
        complete=lambda context: replace(context.config, input=floats.input, output=floats.output),
        files={"model.steered": ""},
    )
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.steered").write_bytes(b"")

    async with running(tmp_path, backend) as server:
        response = await server.infer(request("m", 1))

    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert backend.contexts[0].model_path("other") == tmp_path / "m" / "1" / "model.steered"


async def test_another_configuration_can_be_chosen_by_name(tmp_path: Path) -> None:
    backend = FakeBackend()
    for name in ("with", "without"):
        backend.write(tmp_path, name)
    (tmp_path / "with" / "configs").mkdir()
    (tmp_path / "with" / "configs" / "big.pbtxt").write_text('backend: "fake" max_batch_size: 64')

    async with running(tmp_path, backend, model_config_name="big") as server:
        sizes = [server.model_config(name).max_batch_size for name in ("with", "without")]

    assert sizes == [64, 0]


# The number, place and names of instances


async def test_instances_are_named_after_their_group(tmp_path: Path) -> None:
    backend = Steered()
    write_model(tmp_path, "plain")
    write_model(tmp_path, "groups", FLOATS + 'instance_group [ { count: 2 }, { name: "own" kind: KIND_CPU } ]')

    async with running(tmp_path, backend) as server:
        assert [each.name for each in server.instances("plain")] == ["plain_0"]
        assert [each.name for each in server.instances("groups")] == ["groups_0_0", "groups_0_1", "own_0"]

    assert {placement.kind for placement in backend.placements} == {"CPU"}


async def test_a_backend_may_prefer_more_instances_on_a_cpu(tmp_path: Path) -> None:
    backend = Steered(cpu_instances=2)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert len(server.instances("m")) == 2


async def test_instances_are_made_at_the_same_time_where_the_backend_allows_it(tmp_path: Path) -> None:
    together = threading.Barrier(3, timeout=10)

    def instantiate(placement: Placement) -> Any:
        together.wait()
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate)
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready


async def test_instances_are_made_one_after_the_other_where_the_backend_asks_for_it(tmp_path: Path) -> None:
    alone = threading.Lock()
    overlaps = []

    def instantiate(placement: Placement) -> Any:
        overlaps.append(not alone.acquire(blocking=False))
        threading.Event().wait(0.005)
        alone.release()
        return SteeredModel(backend)

    backend = Steered(instantiate=instantiate, loads_in_parallel=False)
    write_model(tmp_path, "m", FLOATS + "instance_group { count: 3 }")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready

    assert overlaps == [False, False, False]


@pytest.mark.parametrize("count", [1, 3])
async def test_models_load_at_the_same_time_as_many_as_the_option_says(tmp_path: Path, count: int) -> None:
    loading, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(count, timeout=10)

    def load(context: ModelContext) -> Any:
        nonlocal loading, most
        with lock:
            loading += 1
            most = max(most, loading)
        full.wait()
        with lock:
            loading -= 1
        return SteeredModel(backend)

    backend = Steered(load=load)
    for number in range(6):
        write_model(tmp_path, f"m{number}")

    async with running(tmp_path, backend, model_load_thread_count=count) as server:
        assert server.ready().ready

    assert most == count


async def test_a_gpu_that_is_not_there_is_a_clear_load_error(tmp_path: Path) -> None:
    backend = Steered()
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", FLOATS + "instance_group { kind: KIND_GPU gpus: [ 97 ] }")

    async with running(tmp_path, backend) as server:
        reason = await reason_of(server)

    assert "no GPUs are available" in reason or "gpu id 97" in reason


# Folders that are broken


def empty(folder: Path) -> None:
    folder.mkdir()


def only_a_configuration(folder: Path) -> None:
    write_model(folder.parent, folder.name, versions=())


def a_file_for_a_version(folder: Path) -> None:
    write_model(folder.parent, folder.name, versions=())
    (folder / "1").write_text("I should be a folder")


def versions_that_are_none(folder: Path) -> None:
    write_model(folder.parent, folder.name, versions=())
    for name in ("0", "01", "v1", "-1"):
        (folder / name).mkdir()


def a_version_link_that_leads_nowhere(folder: Path) -> None:
    write_model(folder.parent, folder.name, versions=())
    (folder / "1").symlink_to(folder / "nothing")


def a_version_link_to_itself(folder: Path) -> None:
    write_model(folder.parent, folder.name, versions=())
    (folder / "1").symlink_to(folder / "1")


def nothing_asked_for_by_the_policy(folder: Path) -> None:
    write_model(folder.parent, folder.name, FLOATS + "version_policy { specific { versions: [ 7 ] } }")


def a_link_that_leads_nowhere(folder: Path) -> None:
    folder.symlink_to(folder.parent.parent / "nothing")


def a_link_to_itself(folder: Path) -> None:
    folder.symlink_to(folder)


def with_config(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_bytes(content)

    return write


def a_folder_for_a_configuration(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").mkdir()


def a_pipe_for_a_configuration(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    os.mkfifo(folder / "config.pbtxt")


def a_device_for_a_configuration(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").symlink_to("/dev/zero")


def a_configuration_link_that_leads_nowhere(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").symlink_to(folder / "nothing")


def a_configuration_link_to_itself(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").symlink_to(folder / "config.pbtxt")


def labels(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        config = FLOATS.replace('"OUTPUT"', f'"OUTPUT" label_filename: "{name}"')
        write_model(folder.parent, folder.name, config)
        os.mkfifo(folder / "pipe")
        (folder / "binary").write_bytes(b"\xff\xfe")
        (folder / "outside").symlink_to("/etc/passwd")
        (folder / "loop").symlink_to(folder / "loop")

    return write


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (empty, "at least one version must be available"),
    "no version": (only_a_configuration, "it has no version folder, such as 1/"),
    "file for a version": (a_file_for_a_version, "it has no version folder"),
    "no proper version": (versions_that_are_none, "it has no version folder"),
    "dangling version": (a_version_link_that_leads_nowhere, "it has no version folder"),
    "looping version": (a_version_link_to_itself, "it has no version folder"),
    "version not there": (nothing_asked_for_by_the_policy, "its version folders are [1]"),
    "dangling": (a_link_that_leads_nowhere, "is a symbolic link that leads to no folder"),
    "loop": (a_link_to_itself, "is a symbolic link that leads to no folder"),
    "folder for a config": (a_folder_for_a_configuration, "config.pbtxt: cannot be read: "),
    "pipe for a config": (a_pipe_for_a_configuration, "it is no regular file"),
    "device for a config": (a_device_for_a_configuration, "it is no regular file"),
    "dangling config": (a_configuration_link_that_leads_nowhere, "config.pbtxt: cannot be read: "),
    "looping config": (a_configuration_link_to_itself, "config.pbtxt: cannot be read: "),
    "binary config": (with_config(bytes(range(256))), "config.pbtxt"),
    "utf-16 config": (with_config('backend: "steered"'.encode("utf-16")), "config.pbtxt"),
    "nul config": (with_config(b'backend: "steered"\0'), "config.pbtxt:1:"),
    "half a config": (with_config(b'backend: "steered" input { name: "IN'), "config.pbtxt:1:"),
    "another name": (with_config(b'name: "other" backend: "steered"'), "unexpected directory name 'broken'"),
    "unknown key": (with_config(b'backend: "steered"\nmax_batch_sise: 3'), "config.pbtxt:2:1"),
    "unknown backend": (with_config(b'backend: "tensorflou"'), "tensorflou"),
    "unknown scheduler": (
        with_config(b'backend: "steered" parameters { key: "scheduler" value { string_value: "lottery" } }'),
        "lottery",
    ),
    "model file outside": (
        with_config(b'backend: "steered" default_model_filename: "../../../etc/passwd"'),
        "leaves the version folder",
    ),
    "labels missing": (labels("nothing"), "labels"),
    "labels outside": (labels("../../labels"), "leaves the model folder"),
    "labels linked outside": (labels("outside"), "leaves the model's folder"),
    "labels looping": (labels("loop"), "loop"),
    "labels binary": (labels("binary"), "cannot be read"),
    "labels of a pipe": (labels("pipe"), "pipe"),
    "labels with nul": (labels("a\\000b"), "label_filename"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_folder_is_unavailable_with_the_reason_and_harms_nobody(tmp_path: Path, case: str) -> None:
    write, told = BROKEN[case]
    root = tmp_path / "models"
    backend = Steered()
    write_model(root, "good")
    write(root / "broken")

    async with running(root, backend) as server:
        reason = await reason_of(server)

    assert told.replace("labels", "label") in reason
    assert "Traceback" not in reason


@pytest.mark.parametrize("name", ["with space", "m.onnx.old", "ünï", "x" * 255, "-rf", "a\\b", "m:1", "line\nbreak"])
async def test_odd_names_serve(tmp_path: Path, name: str) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, name)

    async with running(tmp_path, backend) as server:
        response = await server.infer(request(name, 1))

    assert response.model_name == name


async def test_a_name_that_is_not_utf_8_is_unavailable(tmp_path: Path) -> None:
    write_model(tmp_path, "good")
    os.makedirs(os.fsencode(tmp_path) + b"/m\xff/1")  # noqa: PTH103 - a Path cannot hold the name

    async with running(tmp_path, Steered()) as server:
        reason = await reason_of(server, "m\\xff")

    assert reason == "the name of the model's folder is not UTF-8: 'm\\xff'; rename it"


async def test_files_sockets_and_hidden_folders_in_a_repository_are_no_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # a socket's path is short
        listener.bind("socket")

    async with running(tmp_path, backend) as server:
        assert [entry.name for entry in server.index()] == ["m"]
        assert server.ready().ready


async def test_ten_mistakes_are_told_at_once(tmp_path: Path) -> None:
    config = """
      max_batch_size: -4
      input [ { name: "A" data_type: TYPE_FP32 dims: [ 0 ] },
              { name: "A" data_type: TYPE_FP32 dims: [ 1 ] },
              { name: "B" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 3 ] } } ]
      output { name: "X" data_type: TYPE_FP32 dims: [ -2 ] label_filename: "../out" }
      instance_group { kind: KIND_CPU gpus: [ 0 ] }
      default_model_filename: "/abs"
      model_warmup { name: "w" batch_size: 1 inputs { key: "A" value { data_type: TYPE_FP32 dims: [ -1 ] } } }
    """
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", config)

    async with running(tmp_path, Steered()) as server:
        reason = await reason_of(server)

    lines = reason.splitlines()
    assert len(lines) == 10
    assert all(line.startswith(f"{tmp_path}/broken/config.pbtxt:") for line in lines)
    assert "for broken" in lines[0]


# Backends that fail


def exits(*_: Any) -> Any:
    raise SystemExit(3)


def out_of_memory(*_: Any) -> Any:
    raise MemoryError("not enough for the weights")


def stops_iterating(*_: Any) -> Any:
    raise StopIteration


def interrupts(*_: Any) -> Any:
    raise KeyboardInterrupt


class OutOfThisWorld(BaseException):
    pass


def out_of_this_world(*_: Any) -> Any:
    raise OutOfThisWorld("beyond")


def plain(*_: Any) -> Any:
    raise ValueError("the file is corrupt at byte 7")


def recurses(*_: Any) -> Any:
    return recurses()


def unprintable(*_: Any) -> Any:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise Unprintable


FAILURES = {
    "SystemExit": exits,
    "MemoryError: not enough for the weights": out_of_memory,
    "StopIteration": stops_iterating,
    "KeyboardInterrupt": interrupts,
    "OutOfThisWorld: beyond": out_of_this_world,
    "ValueError: the file is corrupt at byte 7": plain,
    "RecursionError": recurses,
    "Unprintable": unprintable,
}


@pytest.mark.parametrize("told", FAILURES)
@pytest.mark.parametrize("step", ["complete", "load", "instantiate"])
async def test_whatever_a_backend_raises_is_the_reason_and_harms_nobody(
    tmp_path: Path, told: str, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = Steered()
    broken = Steered("broken", **{step: FAILURES[told]})  # type: ignore[arg-type]
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", backend="broken")

    async with running(tmp_path, good, broken) as server:
        reason = await reason_of(server)

    assert told in reason
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("answer", [None, {}, "config"])
async def test_a_completion_that_gives_no_configuration_is_the_reason(tmp_path: Path, answer: Any) -> None:
    write_model(tmp_path, "good")
    write_model(tmp_path, "broken", backend="broken")

    async with running(tmp_path, Steered(), Steered("broken", complete=lambda context: answer)) as server:
        assert await reason_of(server)


async def test_one_instance_that_fails_fails_the_version_and_closes_the_others(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "instance_group { count: 2 }")
    real = backend.load

    def load(context: ModelContext) -> Any:
        model = real(context)
        instantiate = model.instantiate

        def second_fails(placement: Placement) -> Any:
            if placement.name.endswith("_1"):
                raise MemoryError("one is enough")
            return instantiate(placement)

        model.instantiate = second_fails  # type: ignore[method-assign, assignment]
        return model

    backend.load = load  # type: ignore[method-assign]

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert "MemoryError: one is enough" in entry.reason
    assert backend.events[-2:] == ["close m_0_0", "close m 1"]


@pytest.mark.parametrize(("failures", "state"), [(2, "READY"), (3, "UNAVAILABLE")])
async def test_a_failed_load_is_tried_again_as_often_as_the_option_says(
    tmp_path: Path, failures: int, state: str
) -> None:
    tries: list[ModelContext] = []

    def load(context: ModelContext) -> Any:
        tries.append(context)
        if len(tries) <= failures:
            raise OSError("the network drive sleeps")
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend, model_load_retry_count=2) as server:
        (entry,) = server.index()

    assert (entry.state, len(tries)) == (state, 3)


async def test_one_version_that_fails_fails_the_model_and_frees_the_others(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "version_policy { all { } }", versions=(1, 2))
    real = backend.load

    def load(context: ModelContext) -> Any:
        if context.version == 2:
            raise ValueError("corrupt")
        return real(context)

    backend.load = load  # type: ignore[method-assign]

    async with running(tmp_path, backend) as server:
        index = server.index()
        with pytest.raises(ModelNotReadyError, match="version 2 is at UNAVAILABLE state: ValueError: corrupt"):
            await server.infer(request("m", 1))

    assert [(entry.version, entry.state) for entry in index] == [(1, "UNAVAILABLE"), (2, "UNAVAILABLE")]
    assert "close m 1" in backend.events


# Several repositories


async def test_several_repositories_serve_together(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path / "one", "a")
    backend.write(tmp_path / "two", "b")

    async with running([tmp_path / "one", tmp_path / "two"], backend) as server:
        assert [entry.name for entry in server.index(ready=True)] == ["a", "b"]


async def test_a_model_in_two_repositories_is_loaded_from_neither(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        write_model(root, "broken")
    write_model(roots[0], "good")

    async with running(roots, Steered()) as server:
        reason = await reason_of(server)

    assert "model appears in two or more repositories" in reason
    assert str(roots[0]) in reason
    assert str(roots[1]) in reason


@pytest.mark.parametrize("kind", ["missing", "file"])
async def test_a_repository_that_cannot_be_read_ends_the_start(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "models").write_text("")
    server = Server(model_repository=[tmp_path / "models"], plugins=[])

    with pytest.raises(NotFoundError, match="cannot be read"):
        await server.start()

    assert not server.live()
