"""Model repositories that are not folders, and repository agents, which guard model files before these are loaded."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from naiad.options import Settings
from naiad_config.stores import RepositoryScheme as RepositoryScheme


@dataclass(frozen=True, slots=True)
class GuardedModel:
    """A model before its load: its folder, from the agent before this one, and the `parameters` for this agent.

    The parameters are empty for an agent that the configuration does not name.
    """

    name: str
    directory: Path
    parameters: Mapping[str, str]
    settings: Settings


@runtime_checkable
class RepositoryAgent(Protocol):
    """Guards the folders of models, or replaces them by others, before they are loaded or checked."""

    @property
    def name(self) -> str:
        """Its name in `model_repository_agents`."""

    def required(self, settings: Settings) -> bool:
        """Whether it guards every model: one whose configuration does not name it, before all agents that it names."""

    def guard(self, model: GuardedModel) -> AbstractContextManager[Path]:
        """A context manager whose value is the folder to load from. Raise NaiadError to refuse the model.

        A thread enters it before the load. It exits, after those of later agents, with the error of a load that failed,
        or once everything that was loaded is closed; that of an ensemble exits at the end of the load.
        """
