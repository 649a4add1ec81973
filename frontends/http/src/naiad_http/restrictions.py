"""APIs that a caller may use only with the right header (`--http-restricted-api`)."""

from collections.abc import Iterable, Sequence

from naiad_http.statuses import HttpError
from naiad_kit.frontends.restrictions import RestrictedApis


class Restrictions:
    """Which header each restricted API asks for."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        """Rules look like `model-repository,statistics:admin-key=secret`; raises InvalidArgumentError for a bad one."""
        self._apis = RestrictedApis("--http-restricted-api", rules)

    def check(self, api: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Let the request pass or raise HttpError 403; the names in `headers` are in lower case."""
        wanted = self._apis.refusal(api, headers)
        if wanted:
            raise HttpError(403, f"This API is restricted, expecting header '{wanted}'")
