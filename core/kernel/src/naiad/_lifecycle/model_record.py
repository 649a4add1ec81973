"""The record of one model: its versions, the state of each, and the reasons for clients and the log."""

import asyncio
from dataclasses import dataclass, field

from naiad._lifecycle.prepared import Held, PreparedDependent
from naiad._lifecycle.servables import readiness_of
from naiad.errors import ModelNotReadyError, NaiadError, NotFoundError
from naiad.reports import IndexEntry
from naiad.servables import Servable

LOADING, READY, UNLOADING, UNAVAILABLE = "LOADING", "READY", "UNLOADING", "UNAVAILABLE"
UNLOADED = "unloaded"
"""The reason of a version that was taken out of service on purpose."""


@dataclass(frozen=True, slots=True)
class VersionState:
    """A version's state, and the reason for it where there is one."""

    state: str
    reason: str = ""


@dataclass(slots=True)
class ModelRecord:
    """One model of the server. Changed only by `Models`, under `lock` where a load is under way.

    `serving` are the READY versions; `states` has every version that was ever to be loaded. `reason` says why there is
    no version at all, `reload_error` why the last reload failed while the earlier versions serve on. `held` is what
    the versions that serve need until they are closed. `explicit` models were loaded by name, and not only for
    a model that depends on them; `ambiguous` ones are in several repositories. `prepared` is bound to the models that
    it `depends` on.
    """

    name: str
    serving: dict[int, Servable] = field(default_factory=dict)
    states: dict[int, VersionState] = field(default_factory=dict)
    reason: str = ""
    reload_error: str = ""
    fingerprint: str | None = None
    overridden: bool = False
    unloaded: bool = False
    explicit: bool = False
    ambiguous: bool = False
    prepared: PreparedDependent | None = None
    depends: tuple[str, ...] = ()
    held: Held = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def succeeded(self, reload_error: str = "") -> None:
        """What serves is READY, and earlier failures are forgotten, but for why the last reload failed."""
        self.reason, self.reload_error = "", reload_error
        unloaded = VersionState(UNAVAILABLE, UNLOADED)
        kept = {key: each for key, each in self.states.items() if each.state != UNAVAILABLE or each == unloaded}
        self.states = kept | dict.fromkeys(self.serving, VersionState(READY))

    def is_over(self) -> bool:
        """Whether it was unloaded on purpose and all its versions are closed."""
        return self.unloaded and all(state.state != UNLOADING for state in self.states.values())

    def has_failed(self) -> bool:
        """Whether the last load failed."""
        return bool(self.reload_error) or (bool(self.reason) and not self.unloaded)

    def failed(self, error: NaiadError) -> None:
        """A load failed: what was loading is unavailable, and what served before serves on."""
        reason = UNLOADED if self.overridden and self.serving else error.reason  # a client's versions are not missed
        if self.serving:
            self.reload_error = f"the last reload failed and the earlier generation serves: {error.reason}"
        else:
            self.reason = error.reason
        for version in (*self.states, *error.versions):
            state = self.states.get(version, VersionState(LOADING))
            if version not in self.serving and state.state in (LOADING, UNAVAILABLE) and state.reason != UNLOADED:
                self.states[version] = VersionState(UNAVAILABLE, reason)

    def retired(self) -> None:
        """The model was unloaded on purpose; versions that still drain stay UNLOADING until they are done."""
        self.unloaded = True
        self.reason, self.reload_error = UNLOADED, ""
        self.fingerprint, self.explicit = None, False
        self.prepared, self.depends = None, ()
        for version, state in self.states.items():
            if state.state != UNLOADING:
                self.states[version] = VersionState(UNAVAILABLE, UNLOADED)

    def because(self) -> str:
        """Why no version serves, as the end of a sentence."""
        every = dict.fromkeys([self.reason, *(state.reason or state.state for state in self.states.values())])
        reasons = "; ".join(filter(None, every))
        return f": {reasons}" if reasons else ""

    def missing(self, version: int) -> NaiadError:
        """The error for a version that does not serve; version 0 stands for any."""
        unknown = f"Request for unknown model: '{self.name}'"
        if not version:
            return ModelNotReadyError(f"{unknown} has no available versions{self.because() or f': {LOADING}'}")
        state = self.states.get(version)
        if state is None:
            return NotFoundError(f"{unknown} version {version} is not found")
        return ModelNotReadyError(f"{unknown} version {version} is not at ready state: {state.reason or state.state}")

    def not_ready_reasons(self) -> list[str]:
        """Why the model does not serve all its versions; none when it does, or was unloaded on purpose."""
        if self.unloaded:
            return []
        if not self.serving:
            return [f"model '{self.name}' has no version that serves{self.because()}"]
        reasons = []
        for number, state in self.states.items():
            version = self.serving.get(number)
            if version is None and state.state == UNAVAILABLE and state.reason != UNLOADED:
                reasons.append(f"model '{self.name}' version {number} is {state.state}: {state.reason}")
            if version is not None and not (readiness := readiness_of(version)).ready:
                reasons.append(f"model '{self.name}' version {number}: {'; '.join(readiness.reasons)}")
        return reasons

    def index(self) -> list[IndexEntry]:
        """One entry a version, or one for the model when no version is known."""
        if not self.states:
            return [IndexEntry(self.name, 0, UNAVAILABLE if self.reason else LOADING, self.reason)]
        states = sorted(self.states.items())
        return [IndexEntry(self.name, number, each.state, self._reason(number, each)) for number, each in states]

    def _reason(self, version: int, state: VersionState) -> str:
        if version in self.serving:
            return self.reload_error
        if state.reason == UNLOADED and not self.serving:  # perhaps a later load failed
            return self.reason or state.reason
        return state.reason
