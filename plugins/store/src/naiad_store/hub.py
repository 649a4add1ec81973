"""Objects of the Hugging Face Hub, by the library huggingface_hub: the files of a repository at one of its commits."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad_store.sources import StoredObject
from naiad_store.urls import StoreUrl

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

_SECONDS = 60.0
"""The longest wait for an answer of the hub, or for more of one."""


class HubObjects:
    """The files of the repository of a URL, an `ObjectSource`.

    A listing names the commit of the revision, and files are read at that commit, so they do not change. The token is
    that of `HF_TOKEN` or of `hf auth login`. Raises NotFoundError without huggingface_hub.
    """

    def __init__(self, url: StoreUrl) -> None:
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise NotFoundError(
                f"model repository '{url.text}' cannot be read: the library huggingface_hub is not installed; "
                "pip install 'naiad-store[hf]'"
            ) from error
        self._url = url
        self._endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        self._hub = HfApi(endpoint=self._endpoint, library_name="naiad")

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """See `ObjectSource.objects`."""
        repository, revision = self._url.bucket, self._url.revision or None
        try:
            listed = self._hub.model_info(repository, revision=revision, files_metadata=True, timeout=_SECONDS)
        except Exception as error:
            raise self._away(error) from error
        for file in listed.siblings or ():
            if file.rfilename.startswith(prefix):
                address = f"hf://{self._endpoint}/{repository}"
                yield StoredObject(address, file.rfilename, file.size or 0, _etag(file), str(listed.sha))

    def read(self, stored: StoredObject, start: int, end: int) -> bytearray:
        """See `ObjectSource.read`."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import (  # type: ignore[attr-defined]  # public, and not marked as exported again
            build_hf_headers,
            hf_raise_for_status,
            http_stream_backoff,
        )

        url = hf_hub_url(self._url.bucket, stored.path, revision=stored.revision, endpoint=self._endpoint)
        headers = {**build_hf_headers(library_name="naiad"), "Range": f"bytes={start}-{end - 1}"}
        part = bytearray()
        try:
            with http_stream_backoff("GET", url, headers=headers, timeout=_SECONDS, max_retries=3) as answer:
                hf_raise_for_status(answer)
                whole = (start, end) == (0, stored.size)
                if answer.status_code == 206 or whole:  # 200 brings the file from its first byte on
                    for piece in answer.iter_bytes():
                        part += piece
                        if len(part) > end - start:
                            break
        except Exception as error:
            raise self._away(error) from error
        if len(part) != end - start:
            raise UnavailableError(
                f"the model store '{self._url.text}' answers a range of '{stored.path}' with something else: "
                f"status {answer.status_code}, {len(part)} bytes instead of {end - start}"
            )
        return part

    def _away(self, error: Exception) -> NaiadError:
        """The error of the library as one of ours, with a next step."""
        from huggingface_hub import errors

        text, repository = self._url.text, self._url.bucket
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:400]
        if isinstance(error, errors.RevisionNotFoundError):
            return NotFoundError(f"model repository '{text}' cannot be read: '{repository}' has no such revision")
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403):
            return UnavailableError(
                f"model repository '{text}' cannot be read: there is no '{repository}', or the token of this server "
                f"may not read it: {reason}; docs/stores.md says where the token is taken from"
            )
        if isinstance(error, errors.EntryNotFoundError):
            return UnavailableError(f"a file of the model store '{text}' changed during its download; load it again")
        return UnavailableError(f"the model store '{text}' cannot be reached: {reason}")


def _etag(file: "RepoSibling") -> str:
    """What changes with the content of a file: its SHA-256 where it is large, else its number in git."""
    large: Any = file.lfs
    return str(large.sha256 if large else file.blob_id)
