"""Objects of buckets and containers: S3, Google Cloud Storage and Azure, by the library obstore."""

import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad_store.sources import StoredObject
from naiad_store.urls import StoreUrl, identity_of, options_of

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ObjectStore, S3Credential

_logger = logging.getLogger("naiad")

_MODIFIED = "modified "
"""Prefix of the time of the last change, which stands in for the etag where a store lists none."""


class BucketObjects:
    """The objects of the bucket of a URL, an `ObjectSource`. `identity` is whose credentials the store sees."""

    def __init__(self, url: StoreUrl, store: "ObjectStore", identity: str) -> None:
        self._url = url
        self._identity = identity
        self._address = f"{url.scheme}://{url.endpoint}/{url.account}/{url.bucket}"
        self._store = store

    @classmethod
    def open(cls, url: StoreUrl) -> "BucketObjects":
        """With the credentials of the environment. Raises InvalidArgumentError for those of another form."""
        options = options_of(url)
        identity = identity_of(url, options)
        _logger.info("the model store '%s' is read as %s", url.text, identity)
        return cls(url, _opened(url, options), identity)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """See `ObjectSource.objects`."""
        try:
            for batch in self._store.list(prefix or None):
                for meta in batch:
                    etag = meta["e_tag"] or ""
                    if not etag.strip('"'):
                        etag = f"{_MODIFIED}{meta['last_modified']}"
                    yield StoredObject(self._address, str(meta["path"]), meta["size"], etag)
        except Exception as error:
            raise self._away(error) from error

    def read(self, stored: StoredObject, start: int, end: int) -> Any:
        """See `ObjectSource.read`."""
        options: GetOptions = {"range": (start, end)}
        if not stored.etag.startswith(_MODIFIED):
            options["if_match"] = stored.etag
        else:  # the header has whole seconds, and the listing may have fractions
            changed = datetime.fromisoformat(stored.etag.removeprefix(_MODIFIED))
            options["if_unmodified_since"] = changed + timedelta(seconds=1)
        try:
            return self._store.get(stored.path, options=options).bytes()
        except Exception as error:
            raise self._away(error) from error

    def _away(self, error: Exception) -> NaiadError:
        """The error of the library as one of ours, with a next step."""
        from obstore import exceptions

        if "NoSuchBucket" in str(error) or "bucket does not exist" in str(error):
            return NotFoundError(f"model repository '{self._url.text}' cannot be read: there is no such bucket")
        if isinstance(error, exceptions.PreconditionError | exceptions.NotFoundError):
            return UnavailableError(
                f"a file of the model store '{self._url.text}' changed during its download; load it again"
            )
        reason = _reason(error)
        text = self._url.text
        denied = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
        if denied or any(sign in str(error) for sign in ("403 Forbidden", "401 Unauthorized", "InvalidAccessKeyId")):
            return UnavailableError(
                f"the model store '{text}' refuses the credentials of this server ({self._identity}): {reason}; "
                "docs/stores.md says where credentials are taken from"
            )
        return UnavailableError(f"the model store '{self._url.text}' cannot be reached: {reason}")


def _opened(url: StoreUrl, options: dict[str, Any]) -> "ObjectStore":
    from obstore.store import AzureStore, GCSStore, S3Store

    options["client_options"] = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
    options["retry_config"] = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
    if url.scheme == "s3":
        keys = _static_keys(options)
        return S3Store(**options, credential_provider=keys)
    return GCSStore(**options) if url.scheme == "gs" else AzureStore(**options)


def _static_keys(options: dict[str, Any]) -> "Callable[[], S3Credential] | None":
    """Take the keys of S3 out of the options, as what gives them to the library; None where there are none.

    The library would add `AWS_SESSION_TOKEN` of the environment to keys among its options.
    """
    key, secret = options.pop("access_key_id", ""), options.pop("secret_access_key", "")
    token = options.pop("session_token", None)
    if not key:
        return None
    return lambda: {"access_key_id": key, "secret_access_key": secret, "token": token, "expires_at": None}


def _reason(error: Exception) -> str:
    """The code and the message of the store's answer, else the first line of the library's."""
    text = str(error)
    code, message = (re.search(rf"<{tag}>([^<]+)</{tag}>", text) for tag in ("Code", "Message"))
    if code and message:
        return f"{code[1]}: {message[1]}"
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)[:400]
