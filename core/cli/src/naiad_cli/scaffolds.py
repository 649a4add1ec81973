"""Files made from the templates of `naiad new`."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from naiad.errors import AlreadyExistsError


def write_files(templates: Mapping[str, str], folder: Path, names: Mapping[str, str]) -> None:
    """Make a file of each template, and print its path.

    `templates` maps files under `templates` to paths in the folder. Raises AlreadyExistsError when the folder exists.
    """
    if folder.exists():
        raise AlreadyExistsError(f"'{folder}' is there already; choose another name or remove it")
    source = resources.files("naiad_cli") / "templates"
    for template, target_name in templates.items():
        target = folder / Template(target_name).substitute(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.joinpath(*template.split("/")).read_text(encoding="utf-8")
        target.write_text(Template(text).substitute(names), encoding="utf-8")
        print(f"wrote {target}")
