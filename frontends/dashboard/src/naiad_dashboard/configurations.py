"""The effective configuration of a model as text, with what the server completed or changed marked line by line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from naiad_config import ModelConfig
from naiad_config.errors import ConfigError
from naiad_config.repository import find, read_regular
from naiad_config.text import parse_text, parse_text_with_positions, to_text

WRITTEN, COMPLETED, CHANGED = "written", "completed", "changed"


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """A line of the configuration, and whether it was written so, completed or changed."""

    text: str
    origin: str

    @property
    def closes(self) -> bool:
        """Whether it only ends a message."""
        return self.text.strip() == "}"


def written_config(roots: Sequence[str], name: str) -> ModelConfig | None:
    """The configuration in the model's folder as its author wrote it; None without one. Reads the disk."""
    for folder in _folders(roots, name):
        try:
            return parse_text(read_regular(folder / "config.pbtxt"))
        except (OSError, ConfigError):
            continue
    return None


def is_in_store(roots: Sequence[str], name: str) -> bool:
    """Whether the model is in a model store and not in a folder, so that nothing here has what its author wrote."""
    return any("://" in str(root) for root in roots) and not _folders(roots, name)


def marked_lines(effective: ModelConfig, written: ModelConfig | None) -> list[ConfigLine]:
    """The lines of the effective configuration; all of them completed where nothing was written."""
    lines, paths = _lines_by_path(effective)
    before_lines, before_paths = _lines_by_path(written) if written is not None else ([], {})
    before = {path: before_lines[number] for number, path in before_paths.items()}
    marked: list[ConfigLine] = []
    opened: list[str] = []
    for number, line in enumerate(lines):
        if number in paths:
            origin = _origin(line, before.get(paths[number]))
            if line.endswith("{"):
                opened.append(origin)
        else:
            origin = opened[-1] if opened else WRITTEN
        if line.strip() == "}" and opened:
            origin = opened.pop()
        marked.append(ConfigLine(line, origin))
    return marked


def _folders(roots: Sequence[str], name: str) -> Sequence[Path]:
    return find([Path(root).absolute() for root in roots if "://" not in str(root)], name)


def _origin(line: str, before: str | None) -> str:
    if before is None:
        return COMPLETED
    return WRITTEN if line.endswith("{") or before.strip() == line.strip() else CHANGED


def _lines_by_path(config: ModelConfig) -> tuple[list[str], Mapping[int, str]]:
    """The canonical text of a configuration by lines, and the outermost path that begins on each."""
    text = to_text(config)
    paths: dict[int, str] = {}
    for path, (line, _) in parse_text_with_positions(text).positions.items():
        if path and (line - 1 not in paths or len(path) < len(paths[line - 1])):
            paths[line - 1] = path
    return text.splitlines(), paths
