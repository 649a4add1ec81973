"""The documentation as a site: hooks of MkDocs that fit pages written for GitHub to it, and add the generated pages.

`make docs` runs them. Added are the measurements of bench/RESULTS.md, the pages beside docs/ that links lead to, and a
page for each public module, whose text mkdocstrings takes from the docstrings.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BESIDE = {
    "bench/RESULTS.md": "How fast",
    "bench/README.md": "How it is measured",
    "CONTRIBUTING.md": "Contributing",
    "CHANGELOG.md": "Changes",
    "SECURITY.md": "Reporting a weakness",
}
"""Pages of the project that are not in docs/, by their path, with their titles in the navigation."""

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(\s*)(```+)\s*(\w*).*$")
_ITEM = re.compile(r"^( *)([*-]|\d+\.) +(?=\S)")


def on_config(config: Any) -> Any:
    """Anchors as on GitHub, and the generated pages in the navigation."""
    from pymdownx.slugs import slugify

    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    config.nav[-1]["Reference"].append({"Python": [f"reference/{name}.md" for name in config.extra["modules"]]})
    config.nav.append({"Project": [{title: _beside(path)} for path, title in BESIDE.items()]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for name in config.extra["modules"]:
        content = f"# {name}\n\n::: {name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    for path in BESIDE:
        files.append(File.generated(config, _beside(path), content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that lead to other pages of the site or become text; lists and fences as Python-Markdown reads them."""
    source = page.file.src_uri
    origin = source.removeprefix("project/") if source.startswith("project/") else f"docs/{source}"
    return "\n".join(as_site(_LINK.sub(lambda link: _linked(link, origin, source), markdown).splitlines())) + "\n"


def _beside(path: str) -> str:
    return f"project/{path}"


def _linked(link: re.Match[str], origin: str, source: str) -> str:
    """A link of the file `origin` of the project, whose page in the site is `source`."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
    page = path.removeprefix("docs/") if path.startswith("docs/") else _beside(path) if path in BESIDE else ""
    if path == "README.md":
        page = "index.md"
    if not page or not (path.endswith(".md") or path.startswith("docs/pictures/")):
        return f"{text} (`{path}`)"  # a file of the project that is no page
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(source) or '.')}{anchor})"


def as_site(lines: list[str]) -> Iterator[str]:
    """The lines with four blanks for each level of a list, a blank line before it, and fences with a language alone.

    GitHub needs as many blanks as the mark of the item has; Python-Markdown needs four.
    """
    levels: list[int] = []  # the columns at which the text of the open items begins
    fence, before = "", ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not fence and line.strip():
            if _ITEM.match(line) and not levels and before.strip():
                yield ""
            while levels and indent < levels[-1]:
                levels.pop()
        depth = len(levels)
        column = levels[-1] if levels else 0
        body = line[column:] if line[:column].isspace() or not column else line.lstrip()
        opening = _FENCE.match(body)
        if opening and not fence:
            fence = opening[2]
            body = f"{opening[1]}{fence}{opening[3]}"
        elif fence and body.strip() == fence:
            fence = ""
        elif not fence and line.strip():
            item = _ITEM.match(line)
            if item:
                levels.append(item.end())
        before = line
        yield ("    " * depth + body) if body.strip() else ""
