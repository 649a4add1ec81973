"""The life of an ensemble beside that of its models: it loads after them, and comes and goes with them."""

from pathlib import Path

import pytest

import naiad_scheduler_ensemble
from naiad import Server
from naiad.errors import InvalidArgumentError, ModelNotReadyError, NotFoundError
from naiad_config import ModelTransactionPolicy

from .parts import Parts, ask, infer, plus
from .seen import explicit, reason, states


async def test_ensembles_load_after_their_models_whatever_their_names(chain: Parts) -> None:
    chain.join("a", "A", "D", "f A=A -> D=D")

    async with chain.serving(model_load_thread_count=1) as server:
        assert server.ready().ready
        assert await infer(server, ask("a", 1)) == {"D": 13}


async def test_loading_an_ensemble_loads_its_models(chain: Parts) -> None:
    async with explicit(chain) as server:
        await server.load("f")

        assert set(states(server)) == {"e", "f", "one", "ten"}
        assert await infer(server, ask("f", 1)) == {"D": 13}


async def test_an_ensemble_needs_a_version_folder_that_may_be_empty(chain: Parts) -> None:
    (chain.root / "e" / "1").rmdir()

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError, match="at least one version must be available"):
            await server.load("e")


async def test_an_ensemble_without_a_platform_is_shown_with_it(chain: Parts) -> None:
    path = chain.root / "e" / "config.pbtxt"
    path.write_text(path.read_text().replace('platform: "ensemble"', ""))

    async with chain.serving() as server:
        assert server.model_config("e").platform == "ensemble"


async def test_an_ensemble_has_no_instances(chain: Parts) -> None:
    async with chain.serving() as server:
        assert server.instances("e") == ()
        assert server.model_config("e").instance_group == ()
        assert server.model_config("e").optimization is None
        assert server.model_config("e").backend == ""
        assert server.model_config("e").model_transaction_policy == ModelTransactionPolicy(decoupled=False)
        assert server.model_metadata("e").platform == "ensemble"


async def test_missing_models_are_named_together_with_the_position_of_the_step(chain: Parts) -> None:
    chain.join("g", "A", "D", "no x=A -> y=B", "nowhere x=B -> y=C", "one x=C -> y=D")

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError) as caught:
            await server.load("g")

    message = str(caught.value)
    assert message.startswith(f"failed to load 'g', load failed for model 'g': {chain.root / 'g' / 'config.pbtxt'}:1:")
    assert "ensemble_scheduling.step[0].model_name" in message
    assert "ensemble g contains models that are not available or ambiguous: no, nowhere" in message


async def test_a_model_in_two_repositories_is_ambiguous(chain: Parts, tmp_path: Path) -> None:
    other = Parts(tmp_path / "other")
    other.add("one", "x", "y", plus(1))
    plugins = [chain, naiad_scheduler_ensemble]

    async with Server(
        model_repository=[chain.root, other.root], plugins=plugins, options={"exit-on-error": False}
    ) as server:
        assert "ambiguous: one" in reason(server, "e")


async def test_a_model_that_fails_to_load_fails_its_ensembles_with_its_reason(chain: Parts) -> None:
    chain.write("ten", 'backend: "parts" max_batch_size: -1')

    async with chain.serving() as server:
        assert "ensemble 'e' depends on 'ten' which has no loaded version." in reason(server, "e")
        assert "max_batch_size" in reason(server, "e")
        assert "ensemble 'f' depends on 'e' which has no loaded version." in reason(server, "f")
        assert not server.ready().ready
        with pytest.raises(ModelNotReadyError, match="depends on 'ten'"):
            await server.infer(ask("e"))


async def test_a_version_that_is_not_loaded_is_named(chain: Parts) -> None:
    chain.write(
        "v",
        (chain.root / "e" / "config.pbtxt").read_text().replace("model_version: -1", "model_version: 3"),
    )

    async with explicit(chain) as server:
        with pytest.raises(
            InvalidArgumentError, match="ensemble 'v' depends on 'one' whose required version 3 is not loaded"
        ):
            await server.load("v")


async def test_a_step_keeps_to_the_version_that_it_names(chain: Parts) -> None:
    config = (chain.root / "one" / "config.pbtxt").read_text()
    for version in (1, 2):
        chain.write("one", f"{config} version_policy {{ all {{ }} }}", version)
    chain.write(
        "v", (chain.root / "e" / "config.pbtxt").read_text().replace("model_version: -1", "model_version: 1", 1)
    )

    async with chain.serving() as server:
        await server.infer(ask("v"))
        await server.infer(ask("e"))

    assert [request.version for request in chain.requests["one"]] == [1, 2]


async def test_a_namespace_of_a_step_is_warned_of_and_changes_nothing(
    chain: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    config = (chain.root / "e" / "config.pbtxt").read_text()
    chain.write("e", config.replace('model_name: "ten"', 'model_name: "ten" model_namespace: "elsewhere"'))

    async with chain.serving() as server:
        assert await infer(server, ask("e", 1)) == {"C": 12}

    (warned,) = [record for record in caplog.records if "namespace" in record.getMessage()]
    assert warned.levelname == "WARNING"
    assert warned.getMessage().startswith("ensemble 'e' step 1: model_namespace 'elsewhere' changes nothing")


async def test_ensembles_in_a_circle_are_reported(chain: Parts) -> None:
    chain.join("a", "A", "B", "b A=A -> B=B")
    chain.join("b", "A", "B", "c A=A -> B=B")
    chain.join("c", "A", "B", "a A=A -> B=B")

    async with chain.serving() as server:
        report = {name: reason(server, name) for name in "abc"}
        assert await infer(server, ask("e", 1)) == {"C": 12}

    assert "a -> b -> c -> a" in report["a"]
    assert "b -> c -> a -> b" in report["b"]
    assert "c -> a -> b -> c" in report["c"]


async def test_an_ensemble_of_itself_is_a_circle(chain: Parts) -> None:
    chain.join("g", "A", "B", "g A=A -> B=B")

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError, match="g -> g"):
            await server.load("g")


async def test_what_does_not_fit_together_fails_the_load_and_names_file_and_step(chain: Parts) -> None:
    chain.write("bad", (chain.root / "e" / "config.pbtxt").read_text().replace('key: "x"', 'key: "wrong"', 1))

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError) as caught:
            await server.load("bad")

    message = str(caught.value)
    assert f"{chain.root / 'bad' / 'config.pbtxt'}:1:" in message
    assert 'ensemble_scheduling.step[0].input_map["wrong"]: in ensemble bad, ' in message


async def test_warmup_of_an_ensemble_is_refused(chain: Parts) -> None:
    config = (chain.root / "e" / "config.pbtxt").read_text()
    chain.write("e", config + ' model_warmup { name: "w" batch_size: 1 }')

    async with explicit(chain) as server:
        with pytest.raises(InvalidArgumentError, match="model_warmup"):
            await server.load("e")


async def test_an_ensemble_is_as_ready_as_its_models(chain: Parts) -> None:
    async with chain.serving() as server:
        chain.not_ready["ten"] = "cold"

        result = server.model_ready("f")

        assert not result.ready
        assert result.reasons == ("step 0, model 'e': step 1, model 'ten': instance 'ten_0' is not ready: cold",)


async def test_without_the_plugin_an_ensemble_says_what_to_install(chain: Parts) -> None:
    async with Server(model_repository=[chain.root], plugins=[chain], options={"exit-on-error": False}) as server:
        assert "It comes with naiad-scheduler-ensemble: pip install" in reason(server, "e")


async def test_ensemble_is_no_scheduler_that_a_model_may_ask_for(chain: Parts) -> None:
    config = (chain.root / "one" / "config.pbtxt").read_text()
    chain.write("one", f'{config} parameters {{ key: "scheduler" value {{ string_value: "ensemble" }} }}')

    async with chain.serving() as server:
        assert "scheduler 'ensemble'; installed schedulers: default." in reason(server, "one")


async def test_an_unknown_model_is_still_unknown(chain: Parts) -> None:
    async with chain.serving() as server:
        with pytest.raises(NotFoundError):
            await server.infer(ask("ghost"))
