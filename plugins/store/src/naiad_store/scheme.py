"""Model repositories in object stores: their models, and the downloads of these."""

import hashlib
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO

from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad.options import Option
from naiad_config.repository import is_folder_name
from naiad_config.stores import RemoteModel, RemoteRepository
from naiad_store.cache import ModelCache, StoredObject
from naiad_store.urls import StoreUrl, options_of

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ObjectStore

_logger = logging.getLogger("naiad")

_PART = 16 * 2**20
"""The bytes of one request for a part of an object: what a download holds in memory, and what a broken one repeats."""
_FRESH_SECONDS = 5.0
"""A listing of all models that is not older is taken again: clients may ask for the index as often as they like."""


def _size(text: str) -> int:
    """A number of bytes, with K, M, G or T behind it for powers of 1024. Raises ValueError otherwise."""
    scale = "KMGT".find(text[-1:].upper()) + 1 if text else 0
    value: int = int(text[:-1] if scale else text) * 1024**scale
    if value < 0:
        raise ValueError(f"'{text}' is negative")
    return value


OPTIONS = (
    Option("store-cache", "", "the folder for models that were downloaded from stores", metavar="DIR"),
    Option("store-cache-size", 0, "about the most bytes in that folder, as 200G; 0 is no limit", _size, "BYTES"),
)
"""The options of the plugin."""


class StoreScheme:
    """The repositories whose URLs begin with `s3`, `gs` or `as`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, url: str, settings: Mapping[str, Any]) -> RemoteRepository:
        """The repository of that URL. Raises InvalidArgumentError for a URL or credentials of another form."""
        parsed = StoreUrl.parse(url)
        root = settings["store-cache"] or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad"
        cache = ModelCache(Path(root).absolute() / "store", settings["store-cache-size"])
        fresh = min(_FRESH_SECONDS, settings["repository-poll-secs"])
        return StoreRepository(parsed, _opened(parsed), cache, fresh)


def _opened(url: StoreUrl) -> "ObjectStore":
    from datetime import timedelta

    from obstore.store import AzureStore, GCSStore, S3Store

    options: dict[str, Any] = options_of(url)
    options["client_options"] = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
    options["retry_config"] = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
    if url.scheme == "s3":
        return S3Store(**options)
    return GCSStore(**options) if url.scheme == "gs" else AzureStore(**options)


class StoreRepository:
    """The models below the prefix of a URL. `problem` says why the store cannot be reached, "" while it can.

    Each model is downloaded into the cache when it is loaded, and only what is not there. A listing is taken again for
    `fresh_seconds`. For any thread.
    """

    def __init__(self, url: StoreUrl, store: "ObjectStore", cache: ModelCache, fresh_seconds: float) -> None:
        self.problem = ""
        self._url = url
        self._address = f"{url.scheme}://{url.endpoint}/{url.account}/{url.bucket}"
        self._store = store
        self._cache = cache
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._models: Mapping[str, RemoteModel] | None = None
        self._listed_at = 0.0

    def __str__(self) -> str:
        return self._url.text

    def models(self, name: str = "") -> Mapping[str, RemoteModel]:
        """See `RemoteRepository.models`. One name is looked up anew, all are taken from a listing that is fresh."""
        with self._lock:
            known = self._models
            if known is not None and not name and monotonic() - self._listed_at < self._fresh_seconds:
                return known
            try:
                listed = self._listed(name)
            except NaiadError as error:
                if known is None:
                    raise
                self._note(str(error))
                self._listed_at = monotonic()
                return {name: known[name]} if name in known else known if not name else {}
            self._note("")
            if not name:
                self._models, self._listed_at = listed, monotonic()
            return listed

    def _note(self, problem: str) -> None:
        """Remember that the store is away or back, and log the change."""
        if problem and not self.problem:
            _logger.warning("%s; what is loaded serves on", problem)
        elif self.problem and not problem:
            _logger.info("the model store '%s' can be reached again", self)
        self.problem = problem

    def _listed(self, name: str) -> dict[str, RemoteModel]:
        """The models of the store, or that one. Raises NaiadError."""
        prefix = "/".join(filter(None, (self._url.prefix, name)))
        objects: dict[str, dict[str, StoredObject]] = {}
        empty = True
        try:
            for batch in self._store.list(f"{prefix}/" if prefix else None):
                for meta in batch:
                    empty = False
                    path = str(meta["path"])[len(self._url.prefix) :].lstrip("/")
                    model, _, inside = path.partition("/")
                    if all(map(is_folder_name, (model, *inside.split("/")))) and not model.startswith((".", "__")):
                        etag = meta["e_tag"] or str(meta["last_modified"])
                        stored = StoredObject(self._address, str(meta["path"]), meta["size"], etag)
                        objects.setdefault(model, {})[inside] = stored
        except Exception as error:
            raise self._away(error) from error
        if empty and not name:
            raise NotFoundError(
                f"model repository '{self}' cannot be read: there is nothing below that prefix; name a prefix with "
                "folders of models"
            )
        return {model: self._model(model, _without_markers(files)) for model, files in objects.items()}

    def _model(self, name: str, files: Mapping[str, StoredObject]) -> RemoteModel:
        text = "\n".join(f"{path}\0{stored.key}" for path, stored in sorted(files.items()))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return RemoteModel(name, self, digest, partial(self._fetch, name, digest, files))

    def _fetch(self, name: str, digest: str, files: Mapping[str, StoredObject]) -> Path:
        return self._cache.folder(f"{self}/{name}", digest, files, self._download)

    def _download(self, stored: StoredObject, file: BinaryIO) -> None:
        """Append what the file lacks, in parts."""
        offset = file.tell()
        if stored.size - offset > _PART:
            _logger.info("downloading '%s' of '%s': %d MB", stored.path, self, (stored.size - offset) // 10**6)
        starts = range(offset, stored.size, _PART)
        with ThreadPoolExecutor(1, "naiad-store") as ahead:  # the next part comes while one is written
            parts = (ahead.submit(self._part, start, stored) for start in starts)
            pending = next(parts, None)
            while pending is not None:
                part, pending = pending.result(), next(parts, None)
                file.write(part)

    def _part(self, start: int, stored: StoredObject) -> Any:
        end = min(start + _PART, stored.size)
        options: GetOptions = {"range": (start, end)}
        if stored.etag.strip('"'):
            options["if_match"] = stored.etag
        try:
            return self._store.get(stored.path, options=options).bytes()
        except Exception as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> NaiadError:
        """The error of the library as one of ours, with a next step."""
        from obstore import exceptions

        if isinstance(error, exceptions.PreconditionError | exceptions.NotFoundError):
            if "NoSuchBucket" in str(error) or "bucket does not exist" in str(error):
                return NotFoundError(f"model repository '{self}' cannot be read: there is no such bucket")
            return UnavailableError(f"a file of the model store '{self}' changed during its download; load it again")
        reason = _first_line(error)
        denied = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
        if denied or any(sign in str(error) for sign in ("403 Forbidden", "401 Unauthorized", "InvalidAccessKeyId")):
            return UnavailableError(
                f"the model store '{self}' refuses the credentials of this server: {reason}; docs/stores.md says where "
                "credentials are taken from"
            )
        return UnavailableError(f"the model store '{self}' cannot be reached: {reason}")


def _without_markers(files: Mapping[str, StoredObject]) -> dict[str, StoredObject]:
    """The files without the empty objects that stand for folders; one for an empty version becomes a file in it."""
    folders = {path.rpartition("/")[0] for path in files}
    kept = {path: stored for path, stored in files.items() if stored.size or path not in folders}
    empty = [path for path, stored in kept.items() if not stored.size and path.isdigit()]
    return {f"{path}/.folder" if path in empty else path: stored for path, stored in kept.items()}


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:400]
