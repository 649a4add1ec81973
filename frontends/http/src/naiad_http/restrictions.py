"""Restricted APIs: a request must have the right header (`--http-restricted-api`) and API key (`--api-keys`)."""

from collections.abc import Iterable, Sequence

from naiad_http.statuses import HttpError
from naiad_kit.frontends.api_keys import ApiKeys, credential_headers, credential_of
from naiad_kit.frontends.restrictions import RestrictedApis


class Restrictions:
    """The required header of each restricted API, and the API keys of the server."""

    def __init__(self, rules: Iterable[str] = (), keys: ApiKeys | None = None) -> None:
        """Rules look like `model-repository,statistics:admin-key=secret`; raises InvalidArgumentError for a bad one."""
        self._apis = RestrictedApis("--http-restricted-api", rules)
        self._keys = keys

    def check(self, api: str, headers: Sequence[tuple[bytes, bytes]], model: str = "") -> None:
        """Raise HttpError 403 if the required header is missing, and 401 or 403 if the caller's API key does not do.

        The names in `headers` are in lower case; `model` is "" for a call that names none.
        """
        if self._keys is not None:
            refusal = self._keys.refusal(credential_of(headers), api, model)
            if refusal is not None and refusal.is_known:
                raise HttpError(403, refusal.message)
            if refusal is not None:
                raise HttpError(401, refusal.message, (("WWW-Authenticate", "Bearer"),))
        required = self._apis.refusal(api, headers)
        if required:
            raise HttpError(403, f"This API is restricted, expecting header '{required}'")

    def credential_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
        """The names in lower case of the headers with the caller's API key; none without API keys."""
        if self._keys is None:
            return set()
        return credential_headers((name.lower(), value) for name, value in headers)
