"""Names that try to leave their folder, are longer than a file system allows, or are no names at all."""

import json
from urllib.parse import quote

import pytest
import tritonclient.grpc as triton

from . import models
from .running import Running

TRAVERSALS = ["..", ".", "../echo", "../../etc", "/etc", "echo/../echo", "echo/1", "echo\\1", "./echo", "\0", "echo\0"]
LONG = ["x" * 256, "x" * 5000, "ü" * 128, "x/" * 3000]
STRANGE = ["", " ", "%2e%2e", "\n", "echo\r\nX: y", "\u202e", "\udcff", "💥", "nul", "-", "*", "?", "$(id)", "echo "]
AS_MODEL = [*TRAVERSALS, *LONG, *STRANGE]


def shown(name: str) -> str:
    """A name as the name of a test."""
    return ascii(name[:30])


def quoted(name: str) -> str:
    return quote(name.encode("utf-8", "surrogateescape"), safe="")


@pytest.fixture(scope="module", autouse=True)
def _secret(shared: Running) -> None:
    """What must never be read or written: a model beside the repository, and a file beside its folder."""
    models.write(shared.repository.parent, "outside", models.ECHO)
    (shared.repository.parent / "secret.txt").write_text("secret\n")


@pytest.fixture(autouse=True)
def _nothing_appears_outside(shared: Running) -> object:
    before = sorted(path.name for path in shared.repository.parent.iterdir())
    yield
    assert sorted(path.name for path in shared.repository.parent.iterdir()) == before


@pytest.mark.parametrize("name", [*AS_MODEL, "../outside"], ids=shown)
def test_a_name_that_is_no_models_is_not_found(server: Running, name: str) -> None:
    paths = [("GET", f"/v2/models/{quoted(name)}{part}") for part in ("", "/config", "/ready", "/stats", "/versions/1")]
    paths.append(("POST", f"/v2/models/{quoted(name)}/infer"))

    answers = [server.ask(method, path, models_body() if method == "POST" else None) for method, path in paths]

    assert {answer.status for answer in answers} == {404}
    assert not any("Traceback" in answer.error for answer in answers)


def models_body() -> bytes:
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()


TO_LOAD = [name for name in (*AS_MODEL, "../outside") if name.strip() != "echo"]
"""Blanks around a name are dropped, as Triton drops them."""


@pytest.mark.parametrize("name", TO_LOAD, ids=shown)
def test_a_model_of_that_name_cannot_be_loaded(server: Running, name: str) -> None:
    plain = server.ask("POST", f"/v2/repository/models/{quoted(name)}/load", {})
    config = {"parameters": {"config": "{}", "file:1/model.py": "eA=="}}
    with_files = server.ask("POST", f"/v2/repository/models/{quoted(name)}/load", config)
    unload = server.ask("POST", f"/v2/repository/models/{quoted(name)}/unload", {})

    assert plain.status in (400, 404)
    assert with_files.status in (400, 404)
    assert unload.status in (200, 400, 404)
    assert plain.error


UNUSUAL = [
    "new\nline",
    "ta\tb",
    "back\\slash",
    "per%cent",
    "%2e",
    "sp ace",
    " blank ",
    "ümläut",
    "💥",
    'quo"te',
    "q?x#y&z=1",
    "a+b",
]
"""Names that a folder can have, and that a client can name, encoded."""


@pytest.mark.parametrize("name", UNUSUAL, ids=shown)
def test_a_model_whose_folder_has_an_unusual_name_is_loaded_and_served(server: Running, name: str) -> None:
    models.write(server.repository, name, models.ECHO)
    repository, model = f"/v2/repository/models/{quoted(name)}", f"/v2/models/{quoted(name)}"
    grpc = triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")

    requests = [("load", repository), ("infer", model), ("unload", repository)]
    answers = [
        server.ask("POST", f"{path}/{what}", models_body() if what == "infer" else {}) for what, path in requests
    ]
    grpc.load_model(name)
    metadata = grpc.get_model_metadata(name)
    (entry,) = server.entries(name)
    grpc.unload_model(name)
    grpc.close()

    assert [answer.status for answer in answers] == [200] * 3, [answer.body for answer in answers]
    assert answers[1].document["model_name"] == metadata.name == name
    assert entry["state"] == "READY"


PATHS = ["../secret.txt", "../../secret.txt", "1/../../secret.txt", "/etc/passwd", ".."]
KEYS = {
    "label file": 'output {{ name: "output" label_filename: "{}" }}',
    "model file": 'default_model_filename: "{}"',
    "model file of a capability": 'cc_model_filenames {{ key: "8.0" value: "{}" }}',
    "warmup file": 'model_warmup {{ name: "w" batch_size: 1 inputs {{ key: "x" value '
    '{{ data_type: TYPE_FP32 dims: [1] input_data_file: "{}" }} }} }}',
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_file_that_a_configuration_names_lies_in_the_models_folder(server: Running, key: str, path: str) -> None:
    models.write(server.repository, "names", models.ECHO, KEYS[key].format(path))

    answer = server.load("names")
    server.unload("names")

    assert answer.status == 400, answer.body
    assert "secret\n" not in answer.error


def test_a_name_in_a_request_cannot_forge_a_line_of_the_log(server: Running) -> None:
    forged = 'echo"\nE0101 00:00:00.000000 1 forged.py:1] "forged'

    server.ask("POST", f"/v2/repository/models/{quoted(forged)}/load", {})
    server.infer("echo", 1, id=forged)

    assert not any(line.startswith("E0101 00:00:00") for line in server.log.splitlines())


def test_longer_names_of_inputs_outputs_and_parameters_are_only_names(server: Running) -> None:
    long = "n" * 100_000
    fields = {"name": long, "datatype": "FP32", "shape": [1], "data": [1]}

    answers = [
        server.ask("POST", "/v2/models/echo/infer", {"inputs": [fields]}),
        server.infer("echo", 1, outputs=[{"name": long}]),
        server.infer("echo", 1, id=long, outputs=[{"name": "../" * 1000}]),
    ]
    fine = server.infer("telling", 1, parameters={long: long}, id=long)

    assert [answer.status for answer in answers] == [400] * 3
    assert fine.status == 200
    assert fine.document["parameters"] == {long: long}
