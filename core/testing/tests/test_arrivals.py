"""Arrivals that are made up, and those that were recorded in a file."""

import random

import pytest

from naiad.errors import InvalidArgumentError
from naiad_testing.arrivals import arrivals_of, in_sequences, recorded
from naiad_testing.history import Arrival


def made_up(text, duration=1.0, seed=0):
    return arrivals_of(text, duration, random.Random(seed))


def test_uniform_arrivals_are_evenly_spaced():
    assert made_up("uniform:4") == [Arrival(0.0), Arrival(0.25), Arrival(0.5), Arrival(0.75)]


def test_bursts_come_all_at_once():
    assert made_up("burst:2@400") == [Arrival(time) for time in (0.0, 0.0, 0.4, 0.4, 0.8, 0.8)]


def test_poisson_arrivals_have_their_rate_and_depend_on_the_seed_alone():
    arrivals = made_up("poisson:1000", duration=20.0)

    assert arrivals == made_up("poisson:1000", duration=20.0)
    assert arrivals != made_up("poisson:1000", duration=20.0, seed=1)
    assert len(arrivals) == pytest.approx(20_000, rel=0.05)
    assert arrivals == sorted(arrivals, key=lambda arrival: arrival.time)
    assert arrivals[-1].time < 20.0


@pytest.mark.parametrize("text", ["poisson:", "poisson:0", "uniform:-1", "burst:2", "burst:x@5", "poisson:inf"])
def test_a_number_that_is_none_is_named(text):
    with pytest.raises(InvalidArgumentError, match="need a positive number") as refusal:
        made_up(text)

    assert text in str(refusal.value)


def test_an_unknown_kind_of_arrivals_is_answered_with_the_known_ones():
    with pytest.raises(InvalidArgumentError, match="poisson:RATE"):
        made_up("gamma:3")


def test_a_recording_in_csv_is_read_with_all_its_columns(tmp_path):
    file = tmp_path / "day.csv"
    file.write_text(
        "time,batch_size,priority,timeout_microseconds,shape,leaves_after,sequence_id,sequence_start,sequence_end\n"
        "1000.5,4,2,2500,3x224,0.25,abc,true,no\n"
        "1000.0,,,,,,,,\n"
    )

    assert recorded(file) == [
        Arrival(0.0),
        Arrival(0.5, 4, "3x224", 2, 0.0025, leaves=0.75, sequence_id="abc", sequence_start=True, sequence_end=False),
    ]


def test_a_recording_in_json_lines_is_read(tmp_path):
    file = tmp_path / "day.jsonl"
    file.write_text('{"time": 2, "batch_size": 3, "shape": [3, 224]}\n\n{"time": 2.25, "sequence_start": true}\n')

    assert recorded(file) == [Arrival(0.0, 3, "[3, 224]"), Arrival(0.25, sequence_start=True)]


def test_a_duration_cuts_a_recording_and_none_leaves_it_whole(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("time\n0\n30\n60\n")

    assert [arrival.time for arrival in arrivals_of(str(file), 31.0, random.Random(0))] == [0.0, 30.0]
    assert [arrival.time for arrival in arrivals_of(str(file), None, random.Random(0))] == [0.0, 30.0, 60.0]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.csv", "time,bach_size\n1,2\n", "a.csv:2 has an unknown column 'bach_size'; did you mean batch_size?"),
        ("a.csv", "time\n1\nsoon\n", "a.csv:3: 'soon' is not a valid time"),
        ("a.csv", "time\ninf\n", "a.csv:2: 'inf' is not a valid time"),
        ("a.csv", "time,batch_size\n1,0\n", "a.csv:2: '0' is not a valid batch_size"),
        ("a.csv", "batch_size\n1\n", "a.csv:2 lacks a time"),
        ("a.csv", "time\n1,2\n", "a.csv:2 has more values"),
        ("a.jsonl", '{"time": 1}\n{"time": \n', "a.jsonl:2 is not JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl:1 is not a JSON object"),
        ("a.jsonl", '{"time": [1]}\n', "a.jsonl:1: '\\[1\\]' is not a valid time"),
        ("a.jsonl", "\xff\xfe", "a.jsonl cannot be read"),
    ],
)
def test_a_mistake_in_a_recording_is_named_with_its_line(tmp_path, name, text, complaint):
    file = tmp_path / name
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(InvalidArgumentError, match=complaint):
        recorded(file)


def test_a_recording_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"none\.csv cannot be read"):
        recorded(tmp_path / "none.csv")


def test_arrivals_are_dealt_to_sequences_in_turn():
    dealt = in_sequences([Arrival(float(time)) for time in range(7)], at_once=2, length=2)

    marks = [(each.sequence_id, each.sequence_start, each.sequence_end) for each in dealt]
    assert marks == [
        (1, True, False),
        (2, True, False),
        (1, False, True),
        (2, False, True),
        (3, True, False),
        (4, True, False),
        (3, False, True),
    ]
    assert [each.time for each in dealt] == [0, 1, 2, 3, 4, 5, 6]


def test_ids_may_be_texts():
    (dealt,) = in_sequences([Arrival(0.0)], at_once=1, length=1, text_ids=True)

    assert (dealt.sequence_id, dealt.sequence_start, dealt.sequence_end) == ("1", True, True)


def test_recorded_ids_of_digits_are_numbers_unless_json_quotes_them(tmp_path):
    table, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    table.write_text("time,sequence_id\n0,7\n1,b\n2,\n")
    lines.write_text('{"time": 0, "sequence_id": 7}\n{"time": 1, "sequence_id": "7"}\n')

    assert [each.sequence_id for each in recorded(table)] == [7, "b", 0]
    assert [each.sequence_id for each in recorded(lines)] == [7, "7"]


def test_recorded_requests_may_stream_and_come_back(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("time,streams,returns\n0,0.5,3\n")

    assert recorded(table) == [Arrival(0.0, streams=0.5, returns=3)]
