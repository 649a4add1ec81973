"""Timelines and pictures of simulations: what is in which row, and when."""

from xml.etree import ElementTree

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad_kit.sequences import Row
from naiad_testing.history import Arrival, Crash, Ended, Log, Sent
from naiad_testing.pictures import picture
from naiad_testing.simulation import simulate
from naiad_testing.timeline import Cell, Column, columns_of, timeline

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def two_slots() -> Log:
    """A batch of sequence A alone, in the first of two slots, then one of B in the second."""
    arrivals = (Arrival(0.0, sequence_id="A"), Arrival(0.002, sequence_id="B & C"))
    entries = (
        Sent(0.0, 0, (1,), "no delay", 1, (Row(1, 1, start=True),)),
        Ended(0.001, 0, (1,)),
        Sent(0.002, 0, (2,), "no delay", 1, (Row(0, 1), Row(2, 2, start=True, end=True))),
        Ended(0.004, 0, (2,)),
    )
    return Log(arrivals, entries, 1)


def texts(svg):
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg):
    return [element.attrib for element in ElementTree.fromstring(svg).iter(f"{SVG}rect")][1:]


def test_columns_say_who_was_in_which_row_from_when_to_when(two_slots):
    assert columns_of(two_slots) == (
        Column(0.0, 0.001, 0, "no delay", (Cell("A", start=True),)),
        Column(0.002, 0.004, 0, "no delay", (Cell(), Cell("B & C", start=True, end=True))),
    )


def test_a_timeline_has_a_line_for_each_slot(two_slots):
    assert list(timeline(two_slots)) == ["ms        0   2", "0 slot 0  A+  .", "0 slot 1      B & C+-"]


def test_requests_of_their_own_are_called_by_their_number():
    log = simulate(FifoScheduler(), [Arrival(0.0)] * 3, 0.001, instances=2)

    assert list(timeline(log)) == ["ms       0  1", "0 row 0  1  3", "1 row 0  2"]


def test_a_request_that_comes_back_keeps_its_name():
    log = simulate(FifoScheduler(), [Arrival(0.0, returns=1), Arrival(0.0)], 0.001)

    assert [column.cells for column in columns_of(log)] == [(Cell("1"),), (Cell("2"),), (Cell("1"),)]


def test_a_long_timeline_says_how_much_it_leaves_out():
    log = simulate(FifoScheduler(), [Arrival(0.0)] * 5, 0.001)

    assert list(timeline(log, most=2)) == ["ms       0  1", "0 row 0  1  2", "… and 3 more batches"]


def test_a_batch_that_died_with_its_instance_ends_there():
    log = simulate(FifoScheduler(), [Arrival(0.0)], 0.01, crashes=[Crash(0.004, 0)])

    (column,) = columns_of(log)

    assert (column.end, column.lost) == (0.004, True)
    assert 'class="x"' in picture(log)


def test_a_picture_has_a_box_for_each_row_in_its_time(two_slots):
    one, other, first, null, second = boxes(picture(two_slots))

    assert [float(each["x"]) + float(each["width"]) / 2 for each in (one, other)] == [120.0, 530.0]
    assert (first["x"], first["width"]) == ("120.0", "205.0")
    assert (null["x"], null["width"], null["class"]) == ("530.0", "410.0", "n")
    assert (second["x"], second["width"]) == ("530.0", "410.0")
    assert float(first["y"]) == float(null["y"]) < float(second["y"])


def test_a_picture_names_sequences_slots_and_instances(two_slots):
    words = texts(picture(two_slots))

    assert {"sequence A", "sequence B & C", "instance 0", "slot 0", "slot 1", "A+", "B & C+-"} <= {*words}


def test_a_picture_shows_what_control_tensors_hold(two_slots):
    words = texts(picture(two_slots, signals={"START": {"start"}, "READY": {"ready"}}))

    assert words[words.index("START") + 1 :][:2] == ["1", "0 1"]
    assert words[words.index("READY") + 1 :][:2] == ["1", "0 1"]


def test_a_picture_of_batches_says_why_each_was_sent():
    log = simulate(FifoScheduler(), [Arrival(0.0)] * 2, 0.001)

    assert texts(picture(log)).count("single") == 2


def test_a_picture_of_nothing_is_a_picture():
    words = texts(picture(simulate(FifoScheduler(), [], 0.001)))

    assert "instance 0" in words


def test_the_same_log_gives_the_same_bytes(two_slots):
    assert picture(two_slots) == picture(two_slots)


@pytest.mark.parametrize("seconds", [1e-6, 0.013, 7.0, 86_400.0])
def test_the_axis_has_some_round_times_at_every_scale(seconds):
    log = simulate(FifoScheduler(), [Arrival(0.0)], seconds)

    ticks = [words for words in texts(picture(log)) if words.endswith(" ms")]

    assert ticks[0] == "0 ms"
    assert 5 <= len(ticks) <= 13
