"""The tables of the frontend suite: names, cases, and checks that fail where a frontend is wrong."""

from types import SimpleNamespace

import pytest

from naiad_testing.frontends import Behaviour, Table, behaviours


def test_a_table_has_its_behaviours_and_their_cases_in_order():
    table, seen = Table(), []

    @table.behaviour
    def it_is_there(stage):
        seen.append(stage)

    @table.cases({"first": (1, 2), "second": (3, 4)})
    def it_adds_up(stage, *values):
        seen.append((stage, *values))

    for behaviour in table:
        behaviour.check("stage")

    assert [str(behaviour) for behaviour in table] == ["it is there", "it adds up [first]", "it adds up [second]"]
    assert seen == ["stage", ("stage", 1, 2), ("stage", 3, 4)]


def test_every_behaviour_has_a_name_of_its_own():
    names = [behaviour.name for behaviour in behaviours()]

    assert len(set(names)) == len(names)


def wrong(**answers):
    """A stage whose adapter gives these answers."""
    adapter = SimpleNamespace(**{name: lambda *_, value=value: value for name, value in answers.items()})
    return SimpleNamespace(shared=SimpleNamespace(adapter=adapter))


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("a server and its models are live and ready", {"live": True, "ready": False, "model_ready": True}),
        ("a server says its name version and extensions", {"server_metadata": {"name": "naiad", "version": "x"}}),
        ("statistics and index have every model", {"statistics": [], "index": []}),
    ],
)
def test_a_frontend_that_answers_wrongly_fails_its_check(name, answers):
    (behaviour,) = (each for each in behaviours() if each.name == name)

    with pytest.raises(AssertionError):
        behaviour.check(wrong(**answers))


def test_a_behaviour_is_its_name():
    assert str(Behaviour("it holds", lambda stage: None)) == "it holds"
