"""The command that installs a distribution of Naiad, for the hints in messages."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit


@cache
def install_command(requirement: str) -> str:
    """The command for a requirement: by name, `pip install 'naiad-onnx[cpu]'`, from an index or `PIP_FIND_LINKS`.

    Where this Naiad was installed from a checkout, what is not installed is named by its folder there, with all members
    that it needs; where it was installed from the file of a wheel, the folder of that is searched.
    """
    source = _source()
    if source is not None and source.suffix == ".whl":
        return f"pip install --find-links '{source.parent}' '{requirement}'"
    folders = _folders(requirement, source.parents[1]) if source is not None else []
    return f"pip install {' '.join(folders)}" if folders else f"pip install '{requirement}'"


def _source() -> Path | None:
    """The folder or the wheel that this distribution was installed from, as PEP 610 records it; None for an index."""
    from importlib import metadata  # imports zipfile and email: 7 % of what the process of an isolated model imports

    try:
        text = metadata.distribution("naiad-config").read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # imported from a folder on sys.path
        return None
    url = urlsplit(json.loads(text)["url"]) if text else None
    source = Path(unquote(url.path)) if url is not None and url.scheme == "file" else None
    return source if source is not None and source.exists() else None


def _folders(requirement: str, checkout: Path) -> list[str]:
    """What to give to pip for the members of the checkout that the requirement needs and that are not installed."""
    chosen: dict[str, str] = {}
    waiting, seen = [requirement], set()
    while waiting:
        requirement = waiting.pop()
        name, extras = re.findall(r"^(naiad[\w-]*)(?:\[([\w,-]*)\])?", requirement)[0]
        member = "kernel" if name == "naiad" else name.removeprefix("naiad-")
        project = next(checkout.glob(f"*/{member}/pyproject.toml"), None)
        if requirement in seen or project is None:
            continue
        seen.add(requirement)
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        needs = [each for extra in extras.split(",") for each in table.get("optional-dependencies", {}).get(extra, [])]
        if not _is_installed(name):
            chosen.setdefault(name, f"-e '{project.parent}{f'[{extras}]' if extras else ''}'")
            needs += table["dependencies"]
        waiting += [each for each in needs if each.startswith("naiad")]
    return list(chosen.values())


def _is_installed(name: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
