"""The documentation as a site, without MkDocs: the navigation names every page, and links lead somewhere."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.site import BESIDE, as_site

ROOT = Path(__file__).parents[1]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / path for path in BESIDE)])


def named(entries: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(entries, str):
        yield entries
    for entry in entries if isinstance(entries, list) else entries.values() if isinstance(entries, dict) else ():
        yield from named(entry)


def prose(path: Path) -> str:
    """The text of a page without its code."""
    return re.sub(r"^ *```.*?^ *```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    seen: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ (.+?)\s*$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        names.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return names


def test_the_navigation_names_every_page_once() -> None:
    pages = sorted(named(SITE["nav"]))

    assert pages == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_links_lead_to_files_so_that_the_pages_need_no_server() -> None:
    assert SITE["use_directory_urls"] is False


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    broken = []
    for link in links:
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)

    assert broken == []


def test_lists_and_fences_are_written_as_the_site_reads_them() -> None:
    lines = ["Two:", "1. one", "   ```sh setup", "   ls", "   ```", "", "   * deep", "     more", "2. two", "", "end"]

    assert list(as_site(lines)) == [
        "Two:",
        "",
        "1. one",
        "    ```sh",
        "    ls",
        "    ```",
        "",
        "    * deep",
        "        more",
        "2. two",
        "",
        "end",
    ]


def test_what_is_inside_a_fence_stays_as_it_is() -> None:
    lines = ["```text", "* no list", "  # no heading", "```"]

    assert list(as_site(lines)) == lines
