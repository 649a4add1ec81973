"""The comparing of two servers itself: what is a difference, which are accepted, and what becomes of dead servers."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .accepted import ACCEPTED, acceptance
from .answers import CLOSED, GONE, Answer, Case, Ports
from .asking import DIED, answers
from .cases import ROUNDS
from .comparing import Difference, differences
from .repository import NOT_LOADED, names, write_repository

ROOT = Path(__file__).parents[2]
CASE = Case("case", lambda ports: Answer("200"))
PORTS = Ports(1, 2, 3, Path("nowhere"))


def compared(ours: Answer, theirs: Answer, *any_value: str) -> list[tuple[str, str, str]]:
    case = Case("case", CASE.ask, any_value)
    return [(each.key, each.ours, each.theirs) for each in differences(case, ours, theirs)]


def of(document: object, **more: object) -> Answer:
    return Answer("200", document=document, **more)  # type: ignore[arg-type]


def test_equal_answers_do_not_differ() -> None:
    answer = of({"a": [1, {"b": None}]}, headers={"content-type": "x"}, content=b"1")

    assert compared(answer, answer) == []


def test_another_status_is_reported_alone_and_with_what_was_said() -> None:
    ours, theirs = Answer("400", document={"error": "wrong"}), of({"a": 1})

    assert compared(ours, theirs) == [("case:status", "400 'wrong'", "200")]


def test_headers_are_reported_by_their_names() -> None:
    assert compared(of(None, headers={"content-type": "a"}), of(None)) == [("case:content-type", "'a'", "None")]


def test_members_that_one_side_has_not_are_reported() -> None:
    assert compared(of({"a": 1}), of({"b": 1})) == [("case:$.a", "1", "'(absent)'"), ("case:$.b", "'(absent)'", "1")]


def test_values_are_reported_by_their_key() -> None:
    assert compared(of({"a": [1, 2]}), of({"a": [1, 3]})) == [("case:$.a[1]", "2", "3")]


def test_values_that_may_differ_must_have_the_same_type() -> None:
    ours, theirs = {"x": [{"ns": 5}, {"ns": 5}]}, {"x": [{"ns": 6}, {"ns": "6"}]}

    assert compared(of(ours), of(theirs), "$.x[*].ns") == [("case:$.x[1].ns", "5", "'6'")]


def test_the_words_of_an_error_are_ours() -> None:
    assert compared(Answer("400", document={"error": "a"}), Answer("400", document={"error": "b"})) == []


def test_true_is_no_number() -> None:
    assert compared(of([True]), of([1])) == [("case:$[0]", "True", "1")]


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (0.1, 0.10000000149011612, True),
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (0.1, 0.1001, False),
        (1e39, 1.1e39, False),
    ],
)
def test_numbers_are_compared_as_fp32(ours: float, theirs: float, same: bool) -> None:
    assert (compared(of([ours]), of([theirs])) == []) is same


def test_there_must_be_an_error_on_both_sides() -> None:
    ours, theirs = {"came": [{"error_message": "no"}]}, {"came": [{"error_message": ""}]}

    assert compared(of(ours), of(theirs)) == [("case:$.came[0].error_message", "'no'", "''")]


def test_the_order_of_outputs_counts() -> None:
    one, two = {"name": "a"}, {"name": "b"}

    assert len(compared(of({"outputs": [one, two]}), of({"outputs": [two, one]}))) == 2


def test_other_named_things_are_matched_by_name_and_version() -> None:
    one, two = {"name": "m", "version": "1", "state": "READY"}, {"name": "n"}

    assert compared(of([one, two]), of([two, one])) == []
    assert compared(of([one, two]), of([{**one, "state": "LOADING"}])) == [
        ("case:$.m 1.state", "'READY'", "'LOADING'"),
        ("case:$.n", "{'name': 'n'}", "'(absent)'"),
    ]


def test_tensors_are_compared_byte_by_byte() -> None:
    assert compared(of(None, content=b"\x00"), of(None, content=b"\x01")) == [("case:content", r"b'\x00'", r"b'\x01'")]


def test_a_difference_is_accepted_only_as_it_was_seen() -> None:
    seen = Difference("outputs/twice:status", "400 'twice'", "200")

    assert acceptance(seen) == "an output that a request names twice"
    assert acceptance(Difference(seen.key, seen.theirs, seen.ours)) == ""


@pytest.mark.parametrize("row", sorted({accepted.row for accepted in ACCEPTED}))
def test_what_is_accepted_is_explained(row: str) -> None:
    page = (ROOT / "docs" / "differences.md").read_text()

    assert f"\n| {row} | " in page


def test_no_two_cases_that_can_differ_have_one_key() -> None:
    keys = Counter(case.key for each in ROUNDS for case in each.cases)

    assert [key for key, count in keys.items() if count > 1 and key != "statistics/failing"] == []


def test_a_repository_holds_what_is_loaded_and_what_is_not(tmp_path: Path) -> None:
    written = write_repository(tmp_path)

    assert written == names()
    assert {path.name for path in tmp_path.iterdir()} == {*written, *NOT_LOADED}
    assert sorted(path.name for path in (tmp_path / "versions").iterdir()) == ["1", "2", "3", "config.pbtxt"]


def test_a_server_that_dies_is_started_again_and_its_killer_named() -> None:
    started: list[Ports] = []
    alive = [True]

    @contextmanager
    def serve() -> Iterator[Ports]:
        alive[0] = True
        started.append(PORTS)
        yield PORTS

    def case(key: str) -> Case:
        def ask(_ports: Ports) -> Answer:
            if not alive[0]:
                return Answer(GONE)
            alive[0] = key != "killer"
            return Answer(f"answer to {key}")

        return Case(key, ask)

    result = answers(serve, [case("first"), case("killer"), case("last")])

    assert result == [Answer("answer to first"), DIED, Answer("answer to last")]
    assert len(started) == 2


@pytest.mark.parametrize(("lives", "second"), [(True, Answer(CLOSED)), (False, DIED)])
def test_a_connection_that_ends_without_an_answer_may_be_the_first_sign_of_a_death(lives: bool, second: Answer) -> None:
    started: list[Ports] = []

    @contextmanager
    def serve() -> Iterator[Ports]:
        started.append(PORTS)
        yield PORTS

    cases = [Case(status, lambda ports, status=status: Answer(status)) for status in ("200", CLOSED, "404")]
    result = answers(serve, cases, lives_on=lambda ports: lives)

    assert result == [Answer("200"), second, Answer("404")]
    assert len(started) == (1 if lives else 2)


def test_a_server_that_never_lived_is_an_error() -> None:
    @contextmanager
    def serve() -> Iterator[Ports]:
        yield PORTS

    with pytest.raises(RuntimeError, match="gone before 'case'"):
        answers(serve, [Case("case", lambda ports: Answer(GONE))])


def test_without_a_peer_there_is_nothing_to_compare() -> None:
    command = [sys.executable, "-m", "tests.differential"]

    ended = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True)

    assert ended.returncode == 0
    assert ended.stderr == "There is no peer to compare with: NAIAD_PEER or --peer names its command.\n"
