"""Pages that a reader follows from the top to the end, in an environment that has only what the page has installed."""

import ast
import importlib
import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement

import naiad_custom
from naiad_config.text import parse_text
from naiad_testing import serve

from .environments import built_wheels, check, with_members
from .house.workspace import members
from .reading import DOCS, NOT_RUN, PAGES, Block, Reader, blocks_of, packages_of, sections_of

ROOT = DOCS.parent
BESIDE = ["../README.md", "../CONTRIBUTING.md", "../bench/README.md"]
BLOCKS = [
    pytest.param(block, id=f"{page}-{index}")
    for page in [*PAGES, *BESIDE]
    for index, block in enumerate(blocks_of(page))
    if block.language in ("sh", "python", "json", "pbtxt", "toml", "yaml")
]
EXAMPLES = ("celsius", "add_sub", "typewriter")
"""The models that a page has its reader serve, where it does not write them."""

FOLLOWED = [
    "cache.md",
    "cli.md",
    "dashboard.md",
    "explain.md",
    "from_triton.md",
    "grpc.md",
    "http.md",
    "metrics.md",
    "operations.md",
    "plugins.md",
    "rate_limiter.md",
    "security.md",
    "tracing.md",
    "warmup.md",
]
"""Pages about a server of some models; each is followed as it stands."""

OF_THEIR_OWN = {
    "../README.md": "tests/test_wheels.py",
    "agents.md": "tests/test_pages_that_run.py",
    "custom.md": "tests/test_custom_page.py",
    "debugging.md": "tests/test_pages_that_run.py",
    "deploy.md": "tests/deploy/test_kubernetes.py",
    "frameworks.md": "tests/test_pages_that_run.py",
    "native.md": "tests/test_native.py",
    "python.md": "tests/test_python_page.py",
    "python_backends.md": "tests/test_python_backends_page.py",
    "ragged.md": "tests/test_ragged_page.py",
    "ray.md": "plugins/ray/tests/on_ray/test_one_group.py",
    "scheduler-default.md": "tests/test_pictures.py",
    "scheduler-sequence.md": "tests/test_pictures.py",
    "schedulers.md": "tests/test_schedulers_page.py",
    "sequences.md": "tests/sequences/test_sequences_page.py",
    "shared_memory.md": "tests/end_to_end/test_shared_memory_page.py",
    "stores.md": "tests/test_pages_that_run.py",
    "tutorial.md": "tests/test_pages_that_run.py",
}
"""Pages that have a test of their own, and where."""

BUILDING = ("hatchling",)
"""What an installer would fetch itself to build a distribution, if it had a network."""

OURS = {path.parent.name for member in members() for path in member.folder.glob("src/*/__init__.py")}
"""The packages of this workspace."""

ON_DEMAND = "naiad-ray"
"""The member that has an environment of its own."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of commands of an environment that has what a page installs; pages that install the same share it."""
    folders: dict[tuple[str, ...], Path] = {}

    def of_page(page: str) -> Path:
        packages = packages_of(page)
        every = page in ("tutorial.md", "frameworks.md")  # they begin with `make install`
        key = (str(every), *sorted(packages))
        if key not in folders:
            installed = [member.distribution for member in members()] if every else server_members()
            more = [Requirement(text).name for text in packages if text.startswith("naiad-")]
            chosen = [name for name in (*installed, *more) if name != ON_DEMAND]
            others = [*packages, *BUILDING]
            wheels = built_wheels(tmp_path_factory)
            naiad = with_members(tmp_path_factory.mktemp("venv") / "venv", chosen, others, wheels.packages)
            check(naiad.with_name("python"))
            folders[key] = naiad.parent
        return folders[key]

    return of_page


@pytest.fixture
def read(commands: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Make a reader of a page, in an empty folder and an environment that has what the page installs."""
    readers: list[Reader] = []

    def start(page: str, **variables: str) -> Reader:
        folder = tmp_path / "empty"
        folder.mkdir()
        readers.append(Reader(folder, commands(page), **variables))
        return readers[-1]

    yield start
    for reader in readers:
        reader.stop()


@pytest.fixture
def bucket() -> Iterator[str]:
    """A server of S3 with the model celsius of the examples, in the repository models and alone as resnet: its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    model = (ROOT / "examples/models/celsius/1/model.py").read_bytes()
    for path in ("bucket", "bucket/models/celsius/1/model.py", "bucket/resnet/1/model.py"):
        content = model if path.endswith(".py") else b""
        urlopen(
            Request(f"http://{host}:{port}/{path}", content, {"Content-Type": "text/x-python"}, method="PUT")
        ).close()
    yield f"http://{host}:{port}"
    server.stop()


def server_members() -> list[str]:
    """What `pip install 'naiad[server]'` brings of this workspace."""
    requirements = [Requirement(text) for text in metadata.requires("naiad") or ()]
    return [each.name for each in requirements if each.marker and each.marker.evaluate({"extra": "server"})]


def give_examples(reader: Reader) -> None:
    """The example models, in `models` and as in a checkout."""
    for name in EXAMPLES:
        shutil.copytree(ROOT / "examples/models" / name, reader.folder / "models" / name)
    (reader.folder / "examples").mkdir()
    (reader.folder / "examples/models").symlink_to(reader.folder / "models")
    plugin = "examples/recorded-warmup"
    shutil.copytree(ROOT / plugin, reader.folder / plugin)


def file_of(page: str, path: str) -> Block:
    """The file of a page that has that path."""
    (block,) = [block for block in blocks_of(page) if block.path == path]
    return block


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_works_as_it_stands(read: Callable[..., Reader], page: str) -> None:
    reader = read(page)
    give_examples(reader)

    reader.follow(page)


def test_the_tutorial_works_as_it_stands(read: Callable[..., Reader]) -> None:
    read("tutorial.md").follow("tutorial.md")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("section", sections_of("frameworks.md"))
def test_the_model_of_a_framework_works_as_it_stands(read: Callable[..., Reader], section: str) -> None:
    read(section).follow(section)


def test_every_block_about_frameworks_is_in_a_section() -> None:
    assert [block for each in sections_of("frameworks.md") for block in blocks_of(each)] == blocks_of("frameworks.md")


def test_the_model_of_scikit_learn_in_the_readme_is_served(tmp_path: Path) -> None:
    import joblib
    from sklearn.dummy import DummyClassifier  # takes a second, and all tests are collected

    (source,) = [block.text for block in blocks_of("../README.md") if "joblib" in block.text]
    (tmp_path / "iris" / "1").mkdir(parents=True)
    (tmp_path / "iris/1/model.py").write_text(source)
    joblib.dump(DummyClassifier().fit([[0] * 4] * 3, [7, 7, 2]), tmp_path / "iris/1/iris.joblib")

    with serve(tmp_path / "iris", plugins=[naiad_custom]) as client:
        answer = client.infer(x=np.zeros((2, 4), np.float32))

    assert answer["label"].tolist() == [[7], [7]]


def test_the_test_of_the_page_about_debugging_runs_beside_the_model_of_the_tutorial(
    read: Callable[..., Reader],
) -> None:
    reader = read("tutorial.md")
    reader.write(file_of("tutorial.md", "models/distance/1/model.py"))

    reader.follow("debugging.md")


def test_models_are_signed_and_checked_as_the_page_of_agents_says(read: Callable[..., Reader]) -> None:
    reader = read("agents.md")
    reader.write(file_of("custom.md", "models/add/1/model.py"))

    reader.follow("agents.md")


def test_models_are_served_from_a_bucket_as_the_page_of_stores_says(
    read: Callable[..., Reader], bucket: str, tmp_path: Path
) -> None:
    cloud = {"AWS_ENDPOINT_URL": bucket, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    read("stores.md", **cloud, **keys).follow("stores.md")


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_a_page_has_no_mistake_in_its_language(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "yaml":
        yaml.safe_load(block.text)
    elif block.language == "pbtxt":
        parse_text(f"sequence_batching {{ {block.text} }}" if block.note == "part" else block.text)
    else:
        done = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES)
def test_what_the_python_of_a_page_imports_of_naiad_is_there(page: str) -> None:
    missing = []
    for block in blocks_of(page):
        if block.language != "python":
            continue
        imports = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom)]
        for node in imports:
            if node.module and node.module.split(".")[0] in OURS:
                module = importlib.import_module(node.module)
                missing += [each.name for each in node.names if not hasattr(module, each.name)]

    assert missing == []


@pytest.mark.parametrize("page", [*PAGES, *BESIDE])
def test_every_block_says_what_it_is_and_runs_where_it_can(page: str) -> None:
    blocks = blocks_of(page)

    assert [block.text for block in blocks if not block.language] == []
    notes = {block.note for block in blocks if not block.note.startswith(NOT_RUN)}
    assert notes <= {"", "install", "fails", "example", "part"}
    runs = [block.text for block in blocks if not block.note and (block.path or block.language in ("sh", "python"))]
    if runs and page not in FOLLOWED:
        test = (ROOT / OF_THEIR_OWN[page]).read_text()
        assert Path(page).name in test or 'glob("*.md")' in test


def test_every_block_that_is_not_run_has_a_reason() -> None:
    notes = [block.note for page in [*PAGES, *BESIDE] for block in blocks_of(page) if "not-run" in block.note]

    assert notes
    assert [note for note in notes if not note.startswith(NOT_RUN) or len(note) < len(NOT_RUN) + 5] == []
