"""A loaded model version: its sessions, each shared by as many instances as configured."""

import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError
from naiad_kit.backends.interface import NarrowInputs, mismatches
from naiad_tensorflow.files import read_artefact
from naiad_tensorflow.instance import TensorFlowInstance
from naiad_tensorflow.parameters import RunSettings
from naiad_tensorflow.sessions import open_session

_Opened = tuple[weakref.ref[Any], tuple[str, int]]
"""A session, which lives as long as its instances and closes itself then, and the device where its weights lie."""


class TensorFlowModel:
    """Opens sessions and makes instances over them.

    Raises NaiadError when the model cannot be read, or the configuration does not fit it.
    """

    def __init__(self, context: ModelContext, path: Path, settings: RunSettings) -> None:
        self._context = context
        self._settings = settings
        self._artefact = read_artefact(path, context, settings)
        problems = mismatches(context.config, self._artefact.interface)
        if problems:
            raise ConfigError([replace(each, message=f"{each.message}, in {path.name}") for each in problems])
        self._narrow = NarrowInputs(context.config, self._artefact.interface, path.name)
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], tuple[Any, int]] = {}  # by place, with how many instances it may take yet
        self._sessions: tuple[_Opened, ...] = ()

    def instantiate(self, placement: Placement) -> TensorFlowInstance:
        """An instance there. Raises NaiadError when TensorFlow does not have the device or cannot load the model."""
        config = self._context.config
        session = self._session(placement)
        in_caller = self._settings.runs_in_caller
        return TensorFlowInstance(session, self._artefact, config, self._narrow, in_caller)

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The bytes of the weights, once for each session; tables and what execution takes are not counted."""
        opened = Counter(device for session, device in self._sessions if session() is not None)
        return [
            MemoryUsage(kind, device, sessions * self._artefact.weight_bytes)
            for (kind, device), sessions in sorted(opened.items())
        ]

    def close(self) -> None:
        """Close the sessions."""
        for reference, _ in self._sessions:
            session = reference()
            if session is not None:
                session.close()
        self._sessions = ()
        self._open.clear()

    def _session(self, placement: Placement) -> Any:
        key = (placement.kind, placement.device)
        with self._lock:
            session, remaining = self._open.pop(key, (None, self._settings.shared_by))
            if session is None:
                session = open_session(self._artefact, self._context, self._settings, placement)
                device = ("GPU", placement.device) if placement.kind == "GPU" else ("CPU", 0)
                living = [each for each in self._sessions if each[0]() is not None]
                self._sessions = (*living, (weakref.ref(session), device))
            if remaining > 1:
                self._open[key] = (session, remaining - 1)
            return session
