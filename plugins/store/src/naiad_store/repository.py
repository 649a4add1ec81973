"""Model repositories in stores: their models, and the downloads of these."""

import hashlib
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Any, BinaryIO

from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad_config.repository import is_folder_name
from naiad_config.stores import RemoteModel
from naiad_store.cache import ModelCache
from naiad_store.layouts import is_model_file, model_of_file, models_of, repository_models
from naiad_store.sources import ObjectSource, StoredObject
from naiad_store.urls import StoreUrl

_logger = logging.getLogger("naiad")

PATIENCE_SECONDS = 5.0
"""The seconds after which a store that has not answered a listing counts as away, where there is another answer."""
LONGEST_SECONDS = 60.0
"""The same for a model that may be in that store alone."""
_PART = 16 * 2**20
"""The bytes of one request for a part of an object: what a download holds in memory, and what a broken one repeats."""


class StoreRepository:
    """The models below the prefix of a URL. `problem` says why the store cannot be reached, "" while it can.

    Each model is downloaded into the cache when it is loaded, and only what is not there. A listing is taken again for
    `fresh_seconds`. For any thread.
    """

    def __init__(self, url: StoreUrl, source: ObjectSource, cache: ModelCache, fresh_seconds: float) -> None:
        self.problem = ""
        self._url = url
        self._source = source
        self._cache = cache
        self._fresh_seconds = fresh_seconds
        self._asking = threading.Lock()
        self._asked_at: float | None = None
        self._models: Mapping[str, RemoteModel] | None = None
        self._listed_at = 0.0

    def __str__(self) -> str:
        return self._url.text

    def models(self, name: str = "", is_elsewhere: bool = False) -> Mapping[str, RemoteModel]:
        """See `RemoteRepository.models`. One name is looked up anew, all are taken from a listing that is fresh.

        A store that has not answered for PATIENCE_SECONDS counts as away, so that it holds up no model of another
        repository; it has LONGEST_SECONDS for a model that is nowhere else. Only the first listing of all models waits
        to its end.
        """
        known = self._models
        if known is not None and not name and monotonic() - self._listed_at < self._fresh_seconds:
            return known
        try:
            if name and not is_elsewhere and name not in (known or ()):
                return self._answer(name, LONGEST_SECONDS)
            return self._answer(name, None if known is None and not name else PATIENCE_SECONDS)
        except NaiadError as error:
            if known is None:
                raise
            self._note(str(error))
            self._listed_at = monotonic()
            if name and name not in known:
                raise
            return {name: known[name]} if name else known

    def _answer(self, name: str, patience: float | None) -> Mapping[str, RemoteModel]:
        """What the store has now. Raises its NaiadError, and UnavailableError after so many seconds."""
        late = UnavailableError(f"the model store '{self}' has not answered for {patience or 0:g} s; try again later")
        asked_at = self._asked_at
        if patience is not None and asked_at is not None and monotonic() - asked_at >= patience:
            raise late
        answer: Future[Mapping[str, RemoteModel]] = Future()
        threading.Thread(target=self._ask, args=(name, answer), name="naiad-store-list", daemon=True).start()
        try:
            return answer.result(patience)
        except TimeoutError:
            answer.cancel()  # the request under way goes on; one that waits for it is not begun
            raise late from None
        finally:
            del answer  # it has the error, whose traceback has this frame

    def _ask(self, name: str, answer: "Future[Mapping[str, RemoteModel]]") -> None:
        """Ask the store, one request at a time, and remember the answer, also where nobody waits for it any more."""
        with self._asking:
            if not answer.set_running_or_notify_cancel():
                return
            self._asked_at = monotonic()
            try:
                listed = self._listed(name)
                self._note("")
                if not name:
                    self._models, self._listed_at = listed, monotonic()
                elif self._models is not None:  # what is loaded now is still known when the store is away
                    self._models = {**self._models, **listed}
                answer.set_result(listed)
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
                answer.set_exception(error)
            finally:
                self._asked_at = None
                del answer  # as above

    def _note(self, problem: str) -> None:
        """Remember that the store is away or back, and log the change."""
        if problem and not self.problem:
            _logger.warning("%s; what is loaded serves on", problem)
        elif self.problem and not problem:
            _logger.info("the model store '%s' can be reached again", self)
        self.problem = problem

    def _listed(self, name: str) -> dict[str, RemoteModel]:
        """The models of the store, or that one. Raises NaiadError."""
        file = PurePosixPath(self._url.prefix)
        inside = "" if self._url.model or is_model_file(file.name) else name  # one model is known by all of its files
        files = self._files("/".join(filter(None, (self._url.prefix, inside))), self._url.prefix)
        if inside:
            models = repository_models(files)
        elif files:
            models = models_of(files, self._url.model, str(self))
        elif is_model_file(file.name):
            folder = str(file.parent).removeprefix(".")
            models = {self._url.model or file.stem: model_of_file(self._files(folder, folder), file.name)}
        else:
            models = {}
        listed = {model: self._model(model, _without_markers(files)) for model, files in models.items() if files}
        if not files and not name and not listed:
            raise NotFoundError(
                f"model repository '{self}' cannot be read: there is nothing below that prefix; name a prefix with "
                "folders of models"
            )
        return {name: listed[name]} if name in listed else {} if name else listed

    def _files(self, prefix: str, root: str) -> dict[str, StoredObject]:
        """The objects below a prefix by their paths below `root`, those whose paths stay there. Raises NaiadError."""
        objects = self._source.objects(f"{prefix}/" if prefix else "")
        files = {stored.path[len(root) :].lstrip("/"): stored for stored in objects}
        return {path: stored for path, stored in files.items() if all(map(is_folder_name, path.split("/")))}

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
        return self._source.read(stored, start, min(start + _PART, stored.size))


def _without_markers(files: Mapping[str, StoredObject]) -> dict[str, StoredObject]:
    """The files without the empty objects that stand for folders; one for an empty version becomes a file in it."""
    folders = {str(folder) for path in files for folder in PurePosixPath(path).parents}
    kept = {path: stored for path, stored in files.items() if stored.size or path not in folders}
    empty = [path for path, stored in kept.items() if not stored.size and path.isdigit()]
    return {f"{path}/.folder" if path in empty else path: stored for path, stored in kept.items()}
