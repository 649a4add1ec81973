"""Model folders that are broken in every way: UNAVAILABLE with the reason, and harmless."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.steered import Steered

from .reasons import reason_of


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


def a_link_that_cannot_be_followed(folder: Path) -> None:
    folder.symlink_to("x" * 300)  # ENAMETOOLONG; EACCES, which root does not get, is handled alike


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
    "empty": (empty, "version policy"),
    "no version": (only_a_configuration, "it has no version folder, such as 1/"),
    "file for a version": (a_file_for_a_version, "it has no version folder"),
    "no proper version": (versions_that_are_none, "it has no version folder"),
    "dangling version": (a_version_link_that_leads_nowhere, "it has no version folder"),
    "looping version": (a_version_link_to_itself, "it has no version folder"),
    "version not there": (nothing_asked_for_by_the_policy, "its version folders are [1]"),
    "dangling": (a_link_that_leads_nowhere, "is not a folder, or a symbolic link that leads to none"),
    "loop": (a_link_to_itself, "is not a folder, or a symbolic link that leads to none"),
    "link that cannot be followed": (a_link_that_cannot_be_followed, "is not a folder, or a symbolic link"),
    "folder for a config": (a_folder_for_a_configuration, "config.pbtxt: cannot be read: "),
    "pipe for a config": (a_pipe_for_a_configuration, "config.pbtxt"),
    "device for a config": (a_device_for_a_configuration, "config.pbtxt"),
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
async def test_a_broken_folder_is_unavailable_with_the_reason_and_harms_nothing_else(tmp_path: Path, case: str) -> None:
    write, message = BROKEN[case]
    root = tmp_path / "models"
    backend = Steered()
    write_model(root, "good")
    write(root / "broken")

    async with running(root, backend) as server:
        reason = await reason_of(server)

    assert message.replace("labels", "label") in reason
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


async def test_ten_mistakes_are_reported_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
    assert f"model 'broken' is UNAVAILABLE: {'; '.join(lines)}" in caplog.messages
