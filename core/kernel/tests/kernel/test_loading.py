"""Loading models: the context of the backend, configurations and metadata, retries, repositories."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.backend import ModelContext
from naiad.errors import NotFoundError
from naiad.reports import ModelMetadata, TensorMetadata
from naiad_config.text import parse_text
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.steered import Steered, SteeredModel

from .reasons import reason_of


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
async def test_a_backend_setting_that_is_invalid_is_refused(tmp_path: Path, setting: str) -> None:
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
    # as an editor of Windows writes it, and with a separator of lines for Python alone
    (folder / "labels.txt").write_bytes("\ufeffcat\r\n\r\ndög\u2028s\r\n".encode())

    async with running(tmp_path, backend) as server:
        assert server.labels("m", "OUTPUT") == ("cat", "", "dög\u2028s")
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
