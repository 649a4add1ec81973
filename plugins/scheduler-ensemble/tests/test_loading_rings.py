"""Models that load ensembles while they are loaded themselves, and ensembles that need such models."""

import asyncio
from typing import Any

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_kit.calls import models_of

from .parts import Part, Parts, ask, infer
from .seen import explicit, reason, states


class Asking:
    """Makes models ask for others while they are loaded: `asks` has what each does, `errors` what it raised."""

    def __init__(self, parts: Parts, asks: dict[str, Any], fails: bool = True) -> None:
        self.errors: dict[str, NaiadError] = {}
        self._asks = asks
        self._fails = fails
        self._load = parts.load
        parts.load = self.load  # type: ignore[method-assign]

    def load(self, context: ModelContext) -> Part:
        name = context.config.name
        try:
            self._asks.get(name, lambda models: None)(models_of(context))
        except NaiadError as error:
            self.errors[name] = error
            if self._fails:
                raise
        return self._load(context)


async def test_a_model_that_loads_an_ensemble_of_itself_is_refused_and_so_is_the_ensemble(chain: Parts) -> None:
    asking = Asking(chain, {"ten": lambda models: models.load("e")})

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError, match="load failed for model 'ten'"):
            await server.load("ten")
        report = reason(server, "e")

    assert isinstance(asking.errors["ten"], InvalidArgumentError)
    assert "ensemble 'e' needs model 'ten', which is being loaded and waits for 'e' itself; let the model not" in report


async def test_one_that_goes_on_without_the_ensemble_brings_it_into_service(chain: Parts) -> None:
    asking = Asking(chain, {"ten": lambda models: models.load("e")}, fails=False)

    async with explicit(chain) as server:
        await server.load("ten")

        assert "'ten', which is being loaded" in str(asking.errors["ten"])
        assert states(server) == {"one": "READY", "ten": "READY", "e": "READY"}
        assert await infer(server, ask("e", 1)) == {"C": 12}


@pytest.mark.parametrize("first", ["e", "f", "*"])
async def test_an_ensemble_is_served_although_a_model_of_it_asks_for_it_meanwhile(chain: Parts, first: str) -> None:
    asking = Asking(chain, {"ten": lambda models: models.load("f")}, fails=False)

    async with explicit(chain, first) as server:
        if first == "e":
            await server.load("f")
        served = set(states(server).values())

        assert served == {"READY"}
        assert await infer(server, ask("f", 1)) == {"D": 13}
    assert isinstance(asking.errors["ten"], InvalidArgumentError)


async def test_a_ring_over_another_model_is_refused(chain: Parts) -> None:
    asking = Asking(chain, {"one": lambda models: models.load("ten"), "ten": lambda models: models.load("e")})

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError, match="ensemble 'e' needs model 'one', which is being loaded and"):
            await server.load("one")

    assert set(asking.errors) == {"one", "ten"}


async def test_a_model_that_serves_may_reload_the_ensemble_in_its_own_reload(chain: Parts) -> None:
    asking = Asking(chain, {})

    async with explicit(chain, "*") as server:
        asking._asks["ten"] = lambda models: models.load("e")
        for name in ("ten", "e"):
            (chain.root / name / "1" / "weights").write_text("new")
        await server.load("ten")

        assert not asking.errors
        assert await infer(server, ask("e", 1)) == {"C": 12}


async def test_a_model_may_unload_an_ensemble_of_itself_with_its_models_in_its_own_reload(chain: Parts) -> None:
    asking = Asking(chain, {})

    async with explicit(chain, "e") as server:
        asking._asks["ten"] = lambda models: models.unload("e", unload_dependents=True)
        (chain.root / "ten" / "1" / "weights").write_text("new")
        await asyncio.wait_for(server.load("ten"), 10)

        assert not asking.errors
        assert (states(server)["e"], states(server)["ten"]) == ("UNAVAILABLE", "READY")
