"""The rules of the house find what they forbid, in small workspaces made for the purpose."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from . import boundaries, privates, wording, words
from .__main__ import complaints, main
from .circles import circles
from .figures import Budget, Figure, budgets, measure, settings
from .imports import between_packages, graph
from .workspace import Member, Module, members

PROJECT = '[project]\nname = "{name}"\ndependencies = [{dependencies}]\n'


def workspace(root: Path, files: Mapping[str, str], needs: Mapping[str, str] | None = None) -> list[Member]:
    """A workspace with these files (`core/kernel/naiad/types.py`, the `src` being left out) and its members."""
    for path, text in files.items():
        group, folder, *rest = path.split("/")
        member = root / group / folder
        file = member.joinpath("src", *rest)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        top = member / "src" / rest[0] / "__init__.py"
        top.touch()
        needed = ", ".join(f'"{name}>=0.1,<0.2"' for name in (needs or {}).get(rest[0], "").split())
        project = PROJECT.format(name=rest[0].replace("_", "-"), dependencies=needed)
        (member / "pyproject.toml").write_text(project)
    return members(root)


def edges_of(made: list[Member]) -> dict[str, set[str]]:
    return graph(module for member in made for module in member.modules)


def test_members_are_the_folders_with_a_project_and_modules_have_the_names_by_which_they_are_imported(
    tmp_path: Path,
) -> None:
    made = workspace(tmp_path, {"core/kernel/naiad/_engine/queue.py": "", "plugins/one/naiad_one/templates/a.py": ""})

    assert [member.name for member in made] == ["core/kernel", "plugins/one"]
    assert [member.distribution for member in made] == ["naiad", "naiad-one"]
    assert [[module.name for module in member.modules] for member in made] == [
        ["naiad", "naiad._engine.queue"],
        ["naiad_one"],
    ]


def test_imports_count_wherever_they_stand_and_however_they_are_written(tmp_path: Path) -> None:
    source = (
        "from typing import TYPE_CHECKING\nfrom naiad import batch\nfrom .errors import E\nfrom . import types\n"
        "if TYPE_CHECKING:\n    import naiad.scheduler\n\ndef f():\n    from naiad.server import Server\n"
    )
    names = ("batch", "errors", "types", "scheduler", "server")
    made = workspace(
        tmp_path, {"core/kernel/naiad/a.py": source} | {f"core/kernel/naiad/{name}.py": "" for name in names}
    )

    assert edges_of(made)["naiad.a"] == {"typing", *(f"naiad.{name}" for name in names)}


def test_a_circle_is_found_whatever_its_length_and_what_hangs_on_it_is_not_in_it() -> None:
    edges = {"a": {"b"}, "b": {"c", "x"}, "c": {"a"}, "x": set(), "y": {"a"}, "p": {"q"}, "q": {"p", "elsewhere"}}

    assert circles(edges) == [["a", "b", "c"], ["p", "q"]]


def test_packages_stand_in_a_circle_where_none_of_their_files_does(tmp_path: Path) -> None:
    files = {"x/a.py": "import naiad.y.b", "y/b.py": "", "y/c.py": "import naiad.x.d", "x/d.py": ""}
    made = workspace(tmp_path, {f"core/kernel/naiad/{path}": text for path, text in files.items()})
    edges = edges_of(made)

    packages = between_packages(made[0].modules, edges)

    assert circles(edges) == []
    assert circles(packages) == [["naiad.x", "naiad.y"]]


def test_the_root_of_a_distribution_may_offer_what_its_packages_make(tmp_path: Path) -> None:
    made = workspace(
        tmp_path,
        {
            "core/kernel/naiad/__init__.py": "from naiad._server.server import Server",
            "core/kernel/naiad/_server/server.py": "import naiad.types",
            "core/kernel/naiad/types.py": "",
        },
    )
    edges = edges_of(made)

    assert circles(between_packages(made[0].modules, edges)) == []
    assert boundaries.private_contract(made, edges) == []


@pytest.mark.parametrize(
    ("importer", "imports", "violations"),
    [
        ("plugins/one/naiad_one/a.py", "naiad_two", ["naiad_one.a imports naiad_two"]),
        ("plugins/one/naiad_one/a.py", "naiad_cli", ["naiad_one.a imports naiad_cli"]),
        ("plugins/one/naiad_one/a.py", "naiad_kit.x", []),
        ("core/kernel/naiad/a.py", "naiad_one", ["naiad.a imports naiad_one"]),
        ("core/kernel/naiad/a.py", "naiad_kit.x", ["naiad.a imports naiad_kit.x"]),
        ("core/kernel/naiad/a.py", "naiad_config", []),
        ("core/config/naiad_config/a.py", "naiad.types", ["naiad_config.a imports naiad.types"]),
        ("core/cli/naiad_cli/a.py", "naiad_testing", []),
    ],
)
def test_a_member_imports_what_stands_below_it_and_never_its_like(
    importer: str, imports: str, violations: list[str], tmp_path: Path
) -> None:
    files = {f"core/{name}/{package}/x.py": "" for name, package in (("kit", "naiad_kit"), ("cli", "naiad_cli"))}
    files |= {"core/testing/naiad_testing/x.py": "", "core/config/naiad_config/x.py": "", "core/kernel/naiad/x.py": ""}
    files |= {f"plugins/{name}/naiad_{name}/x.py": "" for name in ("one", "two")}
    everything = workspace(tmp_path, {**files, importer: f"import {imports}\n"})

    assert boundaries.forbidden_members(everything, edges_of(everything)) == violations


def test_a_member_declares_the_members_that_it_imports(tmp_path: Path) -> None:
    files = {"core/kernel/naiad/x.py": "", "core/config/naiad_config/x.py": ""}
    files |= {"plugins/one/naiad_one/a.py": "import naiad.x\nimport naiad_config.x\n"}
    made = workspace(tmp_path, files, {"naiad_one": "naiad"})

    assert boundaries.undeclared_members(made, edges_of(made)) == ["naiad_one.a needs naiad-config"]


def test_only_naiad_imports_its_private_packages_and_not_from_its_contract(tmp_path: Path) -> None:
    private = "from naiad._engine.queue import Queue\n"
    made = workspace(
        tmp_path,
        {
            "core/kernel/naiad/_engine/queue.py": "",
            "core/kernel/naiad/_server/server.py": private,
            "core/kernel/naiad/batch.py": private,
            "plugins/one/naiad_one/a.py": private,
        },
    )
    edges = edges_of(made)

    assert boundaries.back_doors(made, edges) == ["naiad_one.a imports naiad._engine.queue"]
    assert boundaries.private_contract(made, edges) == ["naiad.batch imports naiad._engine.queue"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from naiad._engine.queue import Queue", ["naiad._engine.queue"]),
        ("def test():\n    from naiad import _engine", ["naiad._engine"]),
        ("import naiad._engine.queue as queue", ["naiad._engine.queue"]),
        ("import_module('naiad._engine.queue')", ["naiad._engine.queue"]),
        ("patch('naiad._engine.queue.Queue.submit')", ["naiad._engine.queue.Queue.submit"]),
        ("import naiad\nnaiad.__version__\n'naiad._* is private'", []),
    ],
)
@pytest.mark.parametrize("file", ["plugins/one/tests/test_one.py", "tests/test_all.py", "bench/path.py"])
def test_of_all_tests_only_those_of_the_kernel_import_its_private_packages(
    file: str, source: str, names: list[str], tmp_path: Path
) -> None:
    made = workspace(tmp_path, {"core/kernel/naiad/_engine/queue.py": ""})
    files = []
    for name in (file, "core/kernel/tests/engine/test_queue.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
        files.append(Module(name, tmp_path / name))
    known = [*edges_of(made), "naiad._engine"]

    assert boundaries.private_in_tests(files, known) == [f"{file} imports {name}" for name in names]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from naiad_two.a import _f", ["1 from naiad_two.a import _f"]),
        ("from naiad_two._a import f", ["1 from naiad_two._a import f"]),
        ("monkeypatch.setattr('naiad_two.a._f', 1)", ["1 naiad_two.a._f"]),
        ("x\nassert thing._kept == 1", ["2 thing._kept"]),
        ("import os\nos._kept", []),
        ("from naiad_one.a import _f\n'naiad_one._a'\nthing._own, thing._mine, thing.kept, thing._unknown", []),
    ],
)
def test_tests_name_nothing_private_of_other_members(source: str, names: list[str], tmp_path: Path) -> None:
    sources = {"one": "class A:\n    _own: int\n", "two": "class B:\n    def __init__(self): self._kept = 1\n"}
    made = workspace(tmp_path, {f"plugins/{name}/naiad_{name}/a.py": text for name, text in sources.items()})
    file = Module("plugins/one/tests/test_one.py", tmp_path / "test_one.py")
    file.path.write_text(source)
    beside = Module("plugins/one/tests/conftest.py", tmp_path / "conftest.py")
    beside.path.write_text("class C:\n    _mine = 1")

    assert privates.of_others_in_tests(made, [file, beside]) == [f"{file.name}:{name}" for name in names]


def test_a_message_is_asserted_in_one_test_file(tmp_path: Path) -> None:
    source = (
        '"""The queue of model is full."""\n\ndef refuse(model):\n    return f"the queue of model {model!r} is full"\n'
    )
    made = workspace(
        tmp_path, {"plugins/one/naiad_one/queue.py": source, "plugins/two/naiad_two/a.py": "a = 'it is full'"}
    )
    asserting = {
        "one/tests/test_queue.py": "assert message == \"the queue of model 'm' is full\"",
        "two/tests/test_a.py": "with raises(QueueFullError, match=r\"^the queue of model 'n'\"):\n    pass",
        "two/tests/test_b.py": 'assert "it is full" in message, "the queue of model is full"',
        "two/tests/test_c.py": '@mark.parametrize("text", ["the queue of a", "the queue of (model"])\ndef f(): ...',
    }
    for name, text in asserting.items():
        tests = tmp_path / "plugins" / name
        tests.parent.mkdir(exist_ok=True)
        tests.write_text(text)

    files = [Module(f"plugins/{name}", tmp_path / "plugins" / name) for name in asserting]

    (message,) = wording.repeated([module for member in made for module in member.modules], files)
    words, _, hits = message.partition(": ")
    assert words == "the queue of model"
    assert hits.split() == [f"plugins/{name}:1" for name in asserting if "test_b" not in name]


def test_a_phrase_of_two_messages_may_be_asserted_anywhere(tmp_path: Path) -> None:
    texts = {name: f'{name} = "it must be a number: {name}"' for name in ("a", "b")}
    made = workspace(tmp_path, {f"plugins/one/naiad_one/{name}.py": text for name, text in texts.items()})
    paths = [tmp_path / f"test_{name}.py" for name in texts]
    for path in paths:
        path.write_text('assert "it must be a number" in message')

    assert wording.repeated(made[0].modules, [Module(path.name, path) for path in paths]) == []


def test_callbacks_are_set_by_nobody_but_the_object_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "class A:\n"
        "    def __init__(self, other):\n"
        "        self.done = self.on_end = lambda: None\n"
        "        other.done = self.hear\n"
        "        other.a, other.on_end = 1, None\n"
        "        other.value, other.on_cancelled = self.value, self.hear\n"
        "    def hear(self): ...\n"
        "def f(other):\n"
        "    other.inner.act = lambda: None\n"
    )

    hits = privates.callbacks_from_outside([Module("a", path)])

    assert hits == ["a:4 other.done", "a:5 other.on_end", "a:9 other.inner.act"]


def test_a_lower_layer_imports_no_upper_one(tmp_path: Path) -> None:
    files = {
        "_server/a.py": "import naiad._engine.b",
        "_engine/b.py": "import naiad._lifecycle.c",
        "_lifecycle/c.py": "",
    }
    made = workspace(tmp_path, {f"core/kernel/naiad/{path}": text for path, text in files.items()})

    assert boundaries.upward(made, edges_of(made)) == ["naiad._engine.b imports naiad._lifecycle.c"]


def test_a_pure_module_imports_no_clock_and_a_pure_name_without_a_module_is_a_mistake(tmp_path: Path) -> None:
    made = workspace(tmp_path, {"plugins/one/naiad_one/a.py": "import time", "plugins/one/naiad_one/b.py": "import os"})
    edges = edges_of(made)

    assert boundaries.impure(["naiad_one"], made, edges) == ["naiad_one.a imports time"]
    assert boundaries.impure(["naiad_one.b", "naiad_gone"], made, edges) == ["no module is named naiad_gone"]


def test_words_are_found_in_prose_and_in_names_but_not_inside_other_words(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "As told.\nTold_twice, untold; tell_all, foretell_it: whoever, howsoever.\nIt is no JSON: makes no sense.\n"
    )

    hits = words.in_texts([page], tmp_path)

    assert hits == {
        "told": ["page.md:1", "page.md:2"],
        "tell_*": ["page.md:2"],
        "whoever": ["page.md:2"],
        "makes no sense": ["page.md:3"],
        "is no JSON": ["page.md:3"],
    }


def test_names_count_where_they_are_defined_and_not_where_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "class Place(NobodyElse):\n    _found = 1\n\ndef f(left, placement, found_at, in_place):\n    left + f.places\n"
    )

    hits = words.as_names([Module("a", path)])

    assert {word: items for word, items in hits.items() if items} == {
        "place": ["a:1 Place"],
        "found": ["a:2 _found"],
        "left": ["a:4 left"],
    }


def test_a_missed_limit_and_a_budget_of_nothing_are_said() -> None:
    figures = [Figure("kept", 3), Figure("missed", 4), Figure("free", 9)]
    allowed = {"kept": Budget(0, 3), "missed": Budget(0, 3), "unknown": Budget(0, 0)}

    first, second = complaints(figures, allowed)

    assert first.startswith("missed: 4, the limit is 3.")
    assert "'unknown'" in second


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures that keep every limit of this workspace; `make check` measures the real ones, which takes 20 s."""
    figures = [Figure(name, budget.limit) for name, budget in budgets(settings()).items()]
    figures.append(Figure("lines: naiad-kit", 30, ("naiad_kit.a 20", "naiad_kit.b 10")))
    monkeypatch.setattr("tests.house.__main__.measure", lambda _pure: iter(figures))
    return figures


def test_figures_that_keep_their_limits_are_printed(measured: list[Figure], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    printed = capsys.readouterr()
    assert printed.err == ""
    assert all(figure.name in printed.out for figure in measured)


def test_a_figure_above_its_limit_fails_the_check(measured: list[Figure], capsys: pytest.CaptureFixture[str]) -> None:
    measured[0] = Figure(measured[0].name, measured[0].value + 1)

    assert main([]) == 1

    assert f"{measured[0].name}: {measured[0].value}, the limit is" in capsys.readouterr().err


@pytest.mark.usefixtures("measured")
def test_what_a_figure_counts_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list", "lines: naiad-kit"])

    assert capsys.readouterr().out.splitlines() == ["naiad_kit.a 20", "naiad_kit.b 10"]


def test_a_workspace_is_measured(tmp_path: Path) -> None:
    workspace(tmp_path, {"core/kernel/naiad/_engine/queue.py": "import time\n", "plugins/one/naiad_one/a.py": ""})

    figures = {figure.name: figure.value for figure in measure(["naiad._engine.queue"], tmp_path)}

    assert set(budgets(settings())) <= set(figures)
    assert figures["imports by pure modules of clock, loop, thread or chance"] == 1
    assert (figures["lines: naiad._engine"], figures["lines: naiad-one"]) == (1, 0)
