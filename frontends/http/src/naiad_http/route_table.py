"""Route table: refuses requests by their heads, before their bodies are read."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from starlette.routing import compile_path

from naiad_http.request_heads import ACTION_PATH
from naiad_http.restrictions import Restrictions
from naiad_http.routes.operations import Operation
from naiad_http.statuses import NOT_FOUND, HttpError, not_allowed


class RouteTable:
    """Refuses requests by method, path and headers, as the routes themselves do: 404, 405, and 401 or 403."""

    def __init__(self, operations: Iterable[Operation], restrictions: Restrictions) -> None:
        self._restrictions = restrictions
        self._paths: dict[str, dict[str, str]] = {}
        for each in operations:
            self._paths.setdefault(each.path, {})[each.method] = each.api
        self._patterns: list[tuple[re.Pattern[str], dict[str, str]]] = [
            (compile_path(path)[0], apis) for path, apis in self._paths.items()
        ]

    def refusal(self, method: str, raw_path: bytes, headers: Sequence[tuple[bytes, bytes]]) -> HttpError | None:
        """The refusal of a request, None for one that reaches its endpoint; names in `headers` are in lower case.

        For routes of inference it only checks the method: the request head is checked elsewhere.
        """
        if ACTION_PATH.fullmatch(raw_path):
            return None if method == "POST" else not_allowed(["POST"])
        path = unquote(raw_path.decode("latin-1"))
        matches = [(match, apis) for pattern, apis in self._patterns if (match := pattern.match(path))]
        if not matches:
            return HttpError(404, NOT_FOUND)
        match, api = next(((match, apis[method]) for match, apis in matches if method in apis), (None, ""))
        if match is None:
            return None if method == "HEAD" else not_allowed({name for _, apis in matches for name in apis})
        try:
            self._restrictions.check(api, headers, match.groupdict().get("model", ""))
        except HttpError as error:
            return error
        return None
