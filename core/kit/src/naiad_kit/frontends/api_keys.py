"""API keys: hashed keys in a TOML file, each for some groups of calls and some models (`--api-keys`)."""

import asyncio
import hmac
import logging
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from naiad.errors import UnsupportedError, UsageError
from naiad.server import ServerApi
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.renewal import state_of
from naiad_kit.frontends.restrictions import APIS

_logger = logging.getLogger("naiad")

LOOK_SECONDS = 2.0
"""How often the file is looked at; network mounts do not notify of changed files."""

_FIELDS = ("name", "sha256", "apis", "models")
_HOW = "send 'Authorization: Bearer KEY' or 'x-api-key: KEY'"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key: the SHA-256 of its text, its groups of calls, and patterns of its models, None for every model."""

    name: str
    digest: bytes
    apis: frozenset[str]
    models: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The content of a file: its keys, and the groups of calls that need none."""

    keys: tuple[ApiKey, ...]
    without_key: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is refused: its key is missing or unknown (HTTP 401), or it is a valid key for other calls (403)."""

    is_known: bool
    message: str


class ApiKeys:
    """The API keys of a server, from a file that is read again when it changes. Frontends use `api_keys_of`.

    A caller presents a key in the header or metadata `authorization`, as `Bearer KEY`, or in `x-api-key`.
    """

    name = "api-keys"

    def __init__(self, path: str) -> None:
        """Raises UsageError, with the file and the line, for a file that cannot be used."""
        self._path = path
        self._state = state_of(path)
        self._file = read_key_file(path)
        self._on_change: list[Callable[[], None]] = []

    def refusal(self, credential: bytes, api: str, model: str | None = None) -> Refusal | None:
        """Why a call in the group `api` is refused, None if it may begin.

        `credential` comes from `credential_of`. `model` is "" for a call that names no model, and None while the model
        is not known: then only the group is checked.
        """
        if api in self._file.without_key:
            return None
        if not credential:
            return Refusal(False, f"this call needs an API key; {_HOW}")
        key = self._find(credential)
        if key is None:
            return Refusal(False, f"the API key is unknown or was revoked; {_HOW}")
        if api not in key.apis:
            return Refusal(True, f"the API key '{key.name}' is not for calls in the group '{api}'")
        if model is None or key.models is None or (api == "health" and not model):
            return None
        if not model:
            return Refusal(True, f"the API key '{key.name}' is for some models only, and this call is about no model")
        if any(fnmatchcase(model, pattern) for pattern in key.models):
            return None
        return Refusal(True, f"the API key '{key.name}' is not for the model '{model}'")

    def on_change(self, call: Callable[[], None]) -> None:
        """Have `call` called on the event loop after each change of the keys, to forget what was decided before."""
        self._on_change.append(call)

    async def follow(self) -> None:
        """Use the keys of the file whenever it changes, until the task is cancelled.

        A file that cannot be used changes nothing: the earlier keys stay valid, with a warning in the log.
        """
        threads = CodecThreads("naiad-api-keys", 1)
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                changed = await threads.run(self._changed)
                if changed is not None:
                    self.replace(changed)
        finally:
            threads.close()

    def replace(self, file: KeyFile) -> None:
        """Use these keys from now on. Call it on the event loop."""
        self._file = file
        for call in self._on_change:
            call()
        _logger.info("API keys were read again from '%s': %d valid", self._path, len(file.keys))

    def _find(self, credential: bytes) -> ApiKey | None:
        """The key with that digest. Compares with every key, in constant time."""
        match = None
        for key in self._file.keys:
            if hmac.compare_digest(key.digest, credential):
                match = key
        return match

    def _changed(self) -> KeyFile | None:
        """The file if it is another one than at the last look and can be used. Blocks."""
        state = state_of(self._path)
        if state == self._state:
            return None
        self._state = state
        try:
            return read_key_file(self._path)
        except UsageError as error:
            _logger.warning("the API keys stay as they were: %s", error)
            return None


def api_keys_of(server: ServerApi) -> ApiKeys | None:
    """The API keys of a server, None for a server without. For frontends, when they start."""
    try:
        return server.service(ApiKeys)
    except UnsupportedError:
        return None


def credential_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The SHA-256 of the key that a caller presents, b"" for none. The names in `headers` are in lower case."""
    for _, key in _presented(headers):
        return sha256(key).digest()
    return b""


def credential_headers(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """The names of the headers in which a caller presents its key, in one or both: it is not for models."""
    presented = list(_presented(headers))
    return {name for name, key in presented if key == presented[0][1]}


def _presented(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """What a caller presents as a key, with the name of its header; the first one counts."""
    for name, value in headers:
        if name == b"x-api-key":
            yield name, value.strip()
        elif name == b"authorization":
            scheme, _, key = value.strip().partition(b" ")
            if scheme.lower() == b"bearer" and key.strip():
                yield name, key.strip()


def read_key_file(path: str) -> KeyFile:
    """Read a file of keys. Raises UsageError, with the file and the line, for one that cannot be used."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--api-keys: '{path}' cannot be read: {reason}") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--api-keys: '{path}' is not valid TOML: {error}") from error
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*key\s*\]\]", line)]
    location = f"{path}:1"
    _refuse_unknown(document, ("without_key", "key"), location)
    without_key = _groups(document.get("without_key", ["health"]), "without_key", location)
    tables = document.get("key", [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise UsageError(f"--api-keys: {location}: write each key as a table [[key]]")
    lines += [1] * (len(tables) - len(lines))  # of keys that are written inline
    keys = [_read_key(table, f"{path}:{line}") for table, line in zip(tables, lines, strict=False)]
    for field, what in (("name", "name"), ("digest", "sha256")):
        values = [getattr(key, field) for key in keys]
        for index, value in enumerate(values):
            if value in values[:index]:
                raise UsageError(
                    f"--api-keys: {path}:{lines[index]}: key '{keys[index].name}' has the {what} of another key"
                )
    return KeyFile(tuple(keys), without_key)


def _read_key(table: Mapping[str, Any], location: str) -> ApiKey:
    _refuse_unknown(table, _FIELDS, location)
    name, digest = table.get("name"), table.get("sha256")
    if not (isinstance(name, str) and name):
        raise UsageError(f'--api-keys: {location}: a key needs a name (write name = "who uses it")')
    if not (isinstance(digest, str) and re.fullmatch(r"[0-9a-fA-F]{64}", digest)):
        raise UsageError(
            f"--api-keys: {location}: key '{name}' needs sha256, the 64 hexadecimal digits of the SHA-256 of the key "
            "(printf %s KEY | sha256sum)"
        )
    models = table.get("models")
    if models is not None and not (models and isinstance(models, list) and all(isinstance(m, str) for m in models)):
        raise UsageError(
            f"--api-keys: {location}: models of key '{name}' must be a list of names or patterns; leave it out for "
            "every model"
        )
    apis = _groups(table.get("apis", ["inference", "metadata", "health"]), f"apis of key '{name}'", location)
    return ApiKey(name, bytes.fromhex(digest), apis, None if models is None else tuple(models))


def _groups(value: object, what: str, location: str) -> frozenset[str]:
    if not (isinstance(value, list) and all(isinstance(group, str) for group in value)):
        raise UsageError(f"--api-keys: {location}: {what} must be a list of groups: {', '.join(APIS)}")
    for group in value:
        if group not in APIS:
            raise UsageError(
                f"--api-keys: {location}: {what}: unknown group '{group}'{_nearest(group, APIS)}; there are "
                f"{', '.join(APIS)}"
            )
    return frozenset(value)


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], location: str) -> None:
    for field in table:
        if field not in known:
            raise UsageError(
                f"--api-keys: {location}: unknown field '{field}'{_nearest(field, known)}; there are {', '.join(known)}"
            )


def _nearest(word: str, known: tuple[str, ...]) -> str:
    matches = get_close_matches(word, known, 1)
    return f", did you mean '{matches[0]}'?" if matches else ""
