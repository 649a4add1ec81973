"""The file and the tables of docs/ray.md against what naiad-ray reads."""

import re
from argparse import Namespace
from pathlib import Path

import pytest

from naiad_ray.command import run_check
from naiad_ray.description import Autoscale, Group, Section

from .reading import DOCS, blocks_of
from .written import ECHO, write_model

LABEL, ONGOING = "accelerator=h100", "256 requests in flight each"
TABLES = {"key of a group": Group, "key of `autoscale`": Autoscale}


def defaults_of(title: str) -> dict[str, str]:
    """The keys of a table of the page with their defaults, in its words."""
    page = (DOCS / "ray.md").read_text()
    rows = page.partition(f"| {title} |")[2].partition("\n\n")[0].splitlines()[2:]
    defaults: dict[str, str] = {}
    for row in rows:
        keys, values = (cell.strip() for cell in row.split("|")[1:3])
        names = re.findall(r"`(\w+)`", keys)
        defaults |= dict(zip(names, values.split(", ") if len(names) > 1 else [values], strict=True))
    return defaults


@pytest.mark.parametrize(("title", "section"), TABLES.items())
def test_a_table_has_every_key_with_its_default(title: str, section: type[Section]) -> None:
    documented = defaults_of(title)
    defaults = {name: field.default for name, field in section.model_fields.items()}
    simple = {name: value for name, value in defaults.items() if isinstance(value, int | float | str)}

    assert {*documented} == {*defaults}
    assert {name: documented[name].strip("`") for name in simple} == {
        name: value if isinstance(value, str) else f"{value:g}" for name, value in simple.items()
    }


def test_the_file_of_the_page_passes_its_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = [block.text for block in blocks_of("ray.md") if block.language == "yaml"]
    (tmp_path / "naiad-ray.yaml").write_text(file)
    for name in ("bert-large", "tokenizer", "resnet"):
        write_model(tmp_path / "models", name, ECHO)

    status = run_check(Namespace(path=str(tmp_path)))

    lines = [line.partition(": ") for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert [name for name, _, _ in lines] == [
        "application shop",
        "group text",
        "  bert-large",
        "  tokenizer",
        "group rest",
        "  resnet",
    ]
    assert [rest for name, _, rest in lines if name.startswith(" ")] == ["ok", "ok", "ok"]
    assert "1 to 4 replicas" in lines[1][2]
    assert LABEL in lines[1][2]
    assert lines[4][2].startswith("3 replicas")
