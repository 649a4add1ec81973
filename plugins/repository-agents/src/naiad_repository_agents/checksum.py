"""The repository agent `checksum`: compares files of a model with the digests in its configuration."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad.repositories import GuardedModel

_ALGORITHMS = {"MD5": 32, "SHA256": 64}
"""The algorithms, each with the length of its hexadecimal digests."""


class ChecksumAgent:
    """Refuses a model when a file has another digest than the parameter `MD5:<file>` or `SHA256:<file>` says."""

    name = "checksum"

    def required(self, settings: Settings) -> bool:
        """Never: without parameters there is nothing to compare."""
        return False

    @contextmanager
    def guard(self, model: GuardedModel) -> Iterator[Path]:
        """The model's own folder. Raises InvalidArgumentError for a file that differs or a parameter that is wrong."""
        if not model.parameters:
            raise InvalidArgumentError(
                f"model '{model.name}': the repository agent 'checksum' has no parameters, and would check nothing; "
                'add { key: "SHA256:1/model.onnx" value: "<digest>" } for each file'
            )
        for key, value in model.parameters.items():
            _check(model, key, value.strip().lower())
        yield model.directory


def _check(model: GuardedModel, key: str, expected: str) -> None:
    algorithm, _, file = key.partition(":")
    if algorithm not in _ALGORITHMS or not file:
        raise InvalidArgumentError(
            f"model '{model.name}': the parameter '{key}' of the repository agent 'checksum' is neither MD5:<file> nor "
            "SHA256:<file>"
        )
    if len(expected) != _ALGORITHMS[algorithm] or not set(expected) <= set("0123456789abcdef"):
        raise InvalidArgumentError(
            f"model '{model.name}': the value of '{key}' is not a digest of {_ALGORITHMS[algorithm]} hexadecimal "
            f"digits: '{expected[:80]}'"
        )
    actual = _digest(model, algorithm, file)
    if actual != expected:
        raise InvalidArgumentError(
            f"'{model.name}': Mismatched {algorithm} hash for file {file}, expect: {expected}, got: {actual}"
        )


def _digest(model: GuardedModel, algorithm: str, file: str) -> str:
    folder = model.directory.resolve()
    path = (folder / file).resolve()
    if not path.is_relative_to(folder):
        raise InvalidArgumentError(
            f"model '{model.name}': the file '{file}' of the agent 'checksum' is not inside the model's folder"
        )
    try:
        if not path.is_file():
            raise FileNotFoundError(2, "there is no such file")
        with path.open("rb") as content:
            return hashlib.file_digest(
                content, lambda: hashlib.new(algorithm.lower(), usedforsecurity=algorithm != "MD5")
            ).hexdigest()
    except OSError as error:
        raise InvalidArgumentError(
            f"model '{model.name}': the {algorithm} digest of '{file}' cannot be checked: {error.strerror}"
        ) from error
