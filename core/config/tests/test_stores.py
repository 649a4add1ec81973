"""Models in several repositories, some of which are stores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from naiad_config.errors import NaiadError, UnavailableError
from naiad_config.stores import RemoteModel, find


@dataclass
class Store:
    """A store with nothing in it; with a `problem` it cannot be read."""

    problem: str = ""
    listed: list[str] = field(default_factory=list)

    def models(self, name: str = "", is_elsewhere: bool = False) -> Mapping[str, RemoteModel]:
        self.listed.append(name)
        if self.problem:
            raise UnavailableError(self.problem)
        return {}


def test_a_model_of_a_folder_is_known_while_a_store_beside_it_is_away(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()

    assert find([Store("away"), tmp_path], "m") == [tmp_path / "m"]


def test_a_model_that_only_a_store_may_have_which_is_away_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(NaiadError, match="away"):
        find([tmp_path, Store("away"), Store()], "m")


def test_a_name_that_leaves_the_repository_is_looked_up_nowhere(tmp_path: Path) -> None:
    store = Store()

    assert find([tmp_path, store], "../m") == []
    assert store.listed == []
