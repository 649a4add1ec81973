"""Models of an ensemble that come and go while it is there."""

import asyncio

import pytest

import naiad_scheduler_ensemble
from naiad import Server
from naiad.errors import InvalidArgumentError, ModelNotReadyError
from naiad_testing.loops import until

from .parts import Parts, ask, infer, plus
from .seen import explicit, reason, states


async def test_unloading_a_model_puts_its_ensembles_out_of_service_until_it_is_back(chain: Parts) -> None:
    async with explicit(chain, "*") as server:
        await server.unload("ten")
        await until(lambda: "UNLOADING" not in states(server).values())
        gone = states(server)
        why = reason(server, "e")
        with pytest.raises(ModelNotReadyError):
            await server.infer(ask("f"))
        unready = server.ready()
        await server.load("ten")

        assert gone == {"one": "READY", "ten": "UNAVAILABLE", "e": "UNAVAILABLE", "f": "UNAVAILABLE"}
        assert " Model 'ten' was unloaded." in why
        assert not unready.ready
        assert set(states(server).values()) == {"READY"}
        assert server.ready().ready
        assert await infer(server, ask("f", 1)) == {"D": 13}


async def test_a_model_that_comes_back_otherwise_leaves_its_ensembles_out_and_says_why(chain: Parts) -> None:
    async with explicit(chain, "*") as server:
        before = (chain.root / "ten" / "config.pbtxt").read_text()
        chain.write("ten", before.replace("TYPE_FP32", "TYPE_FP64"))
        await server.load("ten")

        assert "inconsistent data type: TYPE_FP32 " in reason(server, "e")
        assert states(server)["f"] != "READY"

        chain.write("ten", before)
        await server.load("ten")
        assert await infer(server, ask("f", 1)) == {"D": 13}


async def test_a_reload_of_an_ensemble_that_fails_keeps_the_old_one(chain: Parts) -> None:
    async with explicit(chain, "*") as server:
        chain.join("e", "A", "C", "missing x=A -> y=C")
        with pytest.raises(InvalidArgumentError, match=": missing"):
            await server.load("e")

        assert "missing" in reason(server, "e")
        assert await infer(server, ask("e", 1)) == {"C": 12}
        chain.functions["ten"] = plus(20)
        (chain.root / "ten" / "1" / "weights").write_text("new")
        await server.load("ten")
        assert await infer(server, ask("e", 1)) == {"C": 22}
        assert "missing" in reason(server, "e")
        with pytest.raises(InvalidArgumentError, match=": missing"):
            await server.load("e")


async def test_a_model_that_failed_is_tried_again_with_its_ensemble(chain: Parts) -> None:
    with pytest.MonkeyPatch.context() as away:
        away.setattr(chain, "load", refuse)
        async with explicit(chain) as server:
            with pytest.raises(InvalidArgumentError):
                await server.load("e")
            away.undo()

            await server.load("e")

            assert await infer(server, ask("e", 1)) == {"C": 12}


def refuse(_context: object) -> object:
    raise OSError("the drive is away")


async def test_counters_of_an_ensemble_outlive_the_reload_of_a_model(chain: Parts) -> None:
    async with explicit(chain, "*") as server:
        await server.infer(ask("e"))
        (chain.root / "ten" / "1" / "weights").write_text("new")
        await server.load("ten")
        await server.infer(ask("e"))

        assert server.statistics("e")[0].inference_count == 2
        assert server.statistics("ten")[0].inference_count == 1


async def test_an_ensemble_that_is_loaded_again_counts_anew(chain: Parts) -> None:
    async with explicit(chain, "*") as server:
        await server.infer(ask("e"))
        (chain.root / "e" / "1" / "notes").write_text("new")
        await server.load("e")
        await server.infer(ask("e"))

        assert server.statistics("e")[0].inference_count == 1


async def test_reloading_a_model_under_traffic_loses_no_request_of_its_ensembles(chain: Parts) -> None:
    served = 0
    stop = False

    async def client(server: Server) -> None:
        nonlocal served
        while not stop:
            assert await infer(server, ask("f", 1)) == {"D": 13}
            served += 1

    async with explicit(chain, "*") as server:
        clients = [asyncio.ensure_future(client(server)) for _ in range(8)]
        for generation in range(6):
            goal = served + 20
            await until(lambda: served > goal or any(each.done() for each in clients))  # noqa: B023 - awaited at once
            name = ("one", "ten", "e")[generation % 3]
            (chain.root / name / "1" / "weights").write_text(str(generation))
            await server.load(name)
        stop = True
        await asyncio.gather(*clients)


async def test_unloading_a_model_answers_what_its_ensembles_have_begun(chain: Parts) -> None:
    chain.hold("one")

    async with explicit(chain, "*") as server:
        task = asyncio.create_task(server.infer(ask("e", 1)))
        await chain.held()
        await server.unload("ten")
        state = states(server)["ten"]
        chain.release("one")
        response = await task
        await until(lambda: states(server)["ten"] == "UNAVAILABLE")

    assert state == "UNLOADING"
    assert float(response.outputs["C"].array[0]) == 12


async def test_unload_dependents_unloads_models_that_were_not_named(chain: Parts) -> None:
    async with explicit(chain, "one") as server:
        await server.load("f")
        await server.unload("f", unload_dependents=True)

        await until(lambda: "UNLOADING" not in states(server).values())
        assert states(server) == {"one": "READY", "f": "UNAVAILABLE", "e": "UNAVAILABLE", "ten": "UNAVAILABLE"}
        assert [reason(server, name) for name in ("e", "f", "ten")] == ["unloaded"] * 3
        assert server.ready().ready


async def test_without_unload_dependents_the_models_of_an_ensemble_stay(chain: Parts) -> None:
    async with explicit(chain) as server:
        await server.load("e")
        await server.unload("e")

        assert states(server)["one"] == states(server)["ten"] == "READY"


async def test_unload_dependents_keeps_models_that_another_ensemble_needs(chain: Parts) -> None:
    chain.join("g", "A", "B", "one x=A -> y=B")

    async with explicit(chain) as server:
        await server.load("g")
        await server.load("e")
        await server.unload("e", unload_dependents=True)

        assert (states(server)["one"], states(server)["ten"]) == ("READY", "UNLOADING")


async def test_polling_follows_the_models_of_ensembles(chain: Parts) -> None:
    async with chain.serving(model_control_mode="poll", repository_poll_secs=0.01) as server:
        config = (chain.root / "ten" / "config.pbtxt").read_text()
        (chain.root / "ten" / "config.pbtxt").unlink()
        (chain.root / "ten" / "1").rmdir()
        (chain.root / "ten").rmdir()
        await until(lambda: states(server)["e"] == "UNAVAILABLE")
        with pytest.raises(ModelNotReadyError):
            await server.infer(ask("e"))

        chain.write("ten", config)
        await until(lambda: states(server)["e"] == "READY")
        assert await infer(server, ask("e", 1)) == {"C": 12}


async def test_ensembles_stay_when_a_model_of_theirs_appears_in_a_second_repository(
    chain: Parts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Parts(tmp_path_factory.mktemp("other"))
    options = {"model-control-mode": "poll", "repository-poll-secs": 0.01}

    async with Server(
        model_repository=[chain.root, other.root], plugins=[chain, naiad_scheduler_ensemble], options=options
    ) as server:
        other.add("ten", "x", "y", plus(100))
        await until(lambda: "two or more repositories" in reason(server, "ten"))

        assert set(states(server).values()) == {"READY"}
        assert await infer(server, ask("f", 1)) == {"D": 13}
