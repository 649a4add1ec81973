"""Sampling: which requests are traced, counted for each scope. Pure: no clock, no chance."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from naiad_tracing.selection import Selection


class Sampler:
    """Picks the N-th, 2N-th, … of the requests that it is asked about, N being the rate of its selection."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.remaining = selection.count
        self._seen = 0

    def sample(self, forced: bool = False) -> bool:
        """Whether this request is traced; `forced` ones are, and are not counted for the rate."""
        if self.remaining == 0 or not (forced or self._is_due()):
            return False
        if self.remaining > 0:
            self.remaining -= 1
        return True

    def may_sample(self, takes_callers: bool) -> bool:
        """Whether any request could be picked; with `takes_callers` a rate of 0 leaves those that are forced."""
        return self.remaining != 0 and (self.selection.rate > 0 or takes_callers)

    def remaining_selection(self) -> Selection:
        """Its selection, with what remains of the count."""
        return replace(self.selection, count=self.remaining)

    def _is_due(self) -> bool:
        if self.selection.rate == 0:
            return False
        self._seen += 1
        if self._seen < self.selection.rate:
            return False
        self._seen = 0
        return True


class Scopes:
    """The samplers of the server and of those models that have settings of their own.

    A setting that a scope does not have itself follows the wider scope: the model's the server's, the server's the
    command line's. Each scope counts for itself. What remains of a count stays when other settings change.
    """

    def __init__(self, command_line: Selection) -> None:
        self._command_line = command_line
        self._server = Sampler(command_line)
        self._server_own: Mapping[str, Any] = {}
        self._models: dict[str, Sampler] = {}
        self._models_own: dict[str, Mapping[str, Any]] = {}

    def sampler(self, model: str = "") -> Sampler:
        """The sampler that counts for a model, or for all that have no settings of their own."""
        return self._models.get(model, self._server)

    def any(self, question: Callable[[Sampler], bool]) -> bool:
        """Whether the question is answered with yes for any scope."""
        return question(self._server) or any(map(question, self._models.values()))

    def update(self, changes: Mapping[str, Any], model: str = "") -> None:
        """Change fields of the model's selection, or of the server's; None clears one."""
        if model:
            own = _merged(self._models_own.get(model, {}), changes)
            if own:
                self._models_own[model] = own
                self._follow_server(model, "count" in changes)
            else:
                self._models.pop(model, None)
                self._models_own.pop(model, None)
            return
        self._server_own = _merged(self._server_own, changes)
        self._server = _remade(self._command_line.changed(self._server_own), self._server, "count" in changes)
        for name, own in self._models_own.items():
            self._follow_server(name, "count" in changes and "count" not in own)

    def _follow_server(self, model: str, recount: bool) -> None:
        selection = self._server.remaining_selection().changed(self._models_own[model])
        self._models[model] = _remade(selection, self._models.get(model), recount)


def _merged(own: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in {**own, **changes}.items() if value is not None}


def _remade(selection: Selection, before: Sampler | None, recount: bool) -> Sampler:
    if before is None or recount:
        return Sampler(selection)
    return Sampler(replace(selection, count=before.remaining))
