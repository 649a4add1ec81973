"""Restricted APIs: a request must have the right header (`--http-restricted-api`)."""

from collections.abc import Iterable, Sequence

from naiad_http.statuses import HttpError
from naiad_kit.frontends.restrictions import RestrictedApis


class Restrictions:
    """The required header of each restricted API."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        """Rules look like `model-repository,statistics:admin-key=secret`; raises InvalidArgumentError for a bad one."""
        self._apis = RestrictedApis("--http-restricted-api", rules)

    def check(self, api: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Raise HttpError 403 if the required header is missing; the names in `headers` are in lower case."""
        required = self._apis.refusal(api, headers)
        if required:
            raise HttpError(403, f"This API is restricted, expecting header '{required}'")
