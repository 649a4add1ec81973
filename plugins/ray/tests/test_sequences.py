"""Where sequences go: rendezvous hashing, and a front desk's memory of their replicas."""

from naiad_ray.request_fields import SequenceMark
from naiad_ray.sequences import SequenceOwners, choose, session_of

START, NEXT, END = (SequenceMark("7", start, end) for start, end in ((True, False), (False, False), (False, True)))


def test_sequences_are_spread_over_all_replicas() -> None:
    chosen = [choose(session_of(f"m/{number}"), ["a", "b", "c"]) for number in range(300)]

    assert all(70 <= chosen.count(replica) <= 130 for replica in "abc")


def test_a_new_replica_moves_only_the_keys_that_it_gets() -> None:
    keys = [session_of(f"m/{number}") for number in range(300)]
    moved = [(choose(key, ["a", "b"]), choose(key, ["a", "b", "c"])) for key in keys]

    assert {after for before, after in moved if before != after} == {"c"}


def test_every_front_desk_chooses_the_same_replica() -> None:
    assert choose(session_of("m/7"), ["a", "b", "c"]) == choose(session_of("m/7"), ["c", "a", "b"])


def test_a_sequence_stays_at_its_replica_while_that_is_there() -> None:
    assert choose(session_of("m/7", "a"), ["a", "b", "c", "d"]) == "a"
    assert choose(session_of("m/7", "gone"), ["b", "c"]) == choose(session_of("m/7"), ["b", "c"])


def test_the_replica_of_a_sequence_is_remembered_until_its_end() -> None:
    owners = SequenceOwners()

    assert owners.settle("m", START, "a", "g") == ""
    assert owners.session("m", NEXT) == session_of("m/7", "a")
    assert owners.settle("m", END, "a", "g") == ""
    assert owners.session("m", NEXT) == session_of("m/7")


def test_a_request_that_starts_a_sequence_anew_goes_by_hashing() -> None:
    owners = SequenceOwners()
    owners.settle("m", START, "a", "g")

    assert owners.session("m", START) == session_of("m/7")
    assert owners.settle("m", START, "b", "g") == ""


def test_a_sequence_that_another_replica_answers_has_ended() -> None:
    owners = SequenceOwners()
    owners.settle("m", START, "a", "g")

    reason = owners.settle("m", NEXT, "b", "g")

    assert reason == (
        "sequence 7 of model 'm' has ended, because replica a of group 'g', which had its state, has ended; "
        "start the sequence again"
    )
    assert owners.session("m", NEXT) == session_of("m/7")


def test_a_front_desk_forgets_the_sequences_that_were_silent_longest() -> None:
    owners = SequenceOwners(most=2)
    for name in ("1", "2", "3"):
        owners.settle("m", SequenceMark(name, start=True, end=False), "a", "g")

    sessions = [owners.session("m", SequenceMark(name, start=False, end=False)) for name in ("1", "2", "3")]

    assert sessions == [session_of("m/1"), session_of("m/2", "a"), session_of("m/3", "a")]
