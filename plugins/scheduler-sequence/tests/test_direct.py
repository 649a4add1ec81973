"""The direct strategy: which slot a sequence gets, what a batch looks like, and when it goes."""

import pytest

from naiad.scheduler import Ticket
from naiad_kit.sequences import Row
from naiad_testing.simulation import simulate

MS = 1e-3


def test_sequences_get_slot_0_of_every_instance_before_slot_1_of_any(direct, story, played):
    log = simulate(direct(instances=2), story("0:A+ 0:B+ 0:C+ 0:D+"), 5 * MS, instances=2)

    assert played(log) == ["0: 0[A+ C+]", "0: 1[B+ D+]"]


def test_a_sequence_keeps_its_row_and_rows_without_a_request_are_null(direct, story, played):
    log = simulate(direct(), story("0:A+ 0:B+ 10:B 20:A 30:B-"), 5 * MS)

    assert played(log) == ["0: 0[A+ B+]", "10: 0[. B]", "20: 0[A]", "30: 0[. B-]"]


def test_a_null_row_says_whose_it_is_if_anybodys(direct, story):
    scheduler = direct(slots=3)
    for number, name in enumerate("ABC", 1):
        scheduler.arrive(Ticket(number, 0.0, sequence_id=name, sequence_start=True, sequence_end=name == "A"))
    scheduler.decide(0.0, (0,))
    scheduler.settle((1, 2, 3), 1.0)
    scheduler.arrive(Ticket(4, 1.0, sequence_id="C"))

    (dispatch,) = scheduler.decide(1.0, (0,)).dispatches

    assert dispatch.rows == (Row(0), Row(0, 2), Row(4, 3))


def test_slots_behind_the_last_request_are_not_in_the_batch(direct, story, played):
    log = simulate(direct(slots=8), story("0:A+ 0:B+ 0:C+ 10:A 20:B- 30:A"), 5 * MS)

    assert played(log) == ["0: 0[A+ B+ C+]", "10: 0[A]", "20: 0[. B-]", "30: 0[A]"]


def test_one_request_may_be_a_whole_sequence(direct, story, played):
    log = simulate(direct(slots=1), story("0:A+- 0:B+- 0:C+-"), 5 * MS)

    assert played(log) == ["0: 0[A+-]", "5: 0[B+-]", "10: 0[C+-]"]


def test_a_model_without_batching_has_one_slot_an_instance(direct, story, played):
    log = simulate(direct(slots=0, instances=2), story("0:A+ 0:B+ 0:C+- 10:A- 20:B-"), 5 * MS, instances=2)

    assert played(log) == ["0: 0[A+]", "0: 1[B+]", "10: 0[A-]", "15: 0[C+-]", "20: 1[B-]"]


def test_requests_of_a_sequence_run_one_at_a_time_in_order(direct, story, played):
    log = simulate(direct(), story("0:A+ 0:A 0:A 0:A-"), 5 * MS)

    assert [sent.tickets for sent in log.sent] == [(1,), (2,), (3,), (4,)]
    assert [sent.time for sent in log.sent] == pytest.approx([0, 5 * MS, 10 * MS, 15 * MS])


def test_a_request_of_another_shape_stays_for_the_next_batch(direct, story, played):
    wide = {"0:B+": {"shape_key": "wide"}}
    log = simulate(direct(slots=3), story("0:A+ 0:B+ 0:C+", wide), 5 * MS)

    assert played(log) == ["0: 0[A+ . C+]", "5: 0[. B+]"]


def test_the_oldest_request_says_which_shape_goes_so_that_none_waits_for_ever(direct, story, played):
    wide = {"1:B+": {"shape_key": "wide"}}
    log = simulate(direct(), story("0:A+ 1:B+ 2:A 3:A 4:A-", wide), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[. B+]", "10: 0[A]", "15: 0[A]", "20: 0[A-]"]


@pytest.mark.parametrize("settings", [{"max_queue_delay_microseconds": 4000}, {"minimum_slot_utilization": 1.0}])
def test_without_both_a_delay_and_a_utilization_nothing_is_held_back(direct, story, settings):
    log = simulate(direct(**settings), story("0:A+-"), 5 * MS)

    assert [(sent.time, sent.reason) for sent in log.sent] == [(0.0, "no delay")]


def test_a_batch_waits_until_enough_slots_have_a_request(direct, story, played):
    scheduler = direct(slots=4, minimum_slot_utilization=0.5, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 3:B+ 4:C+ 4:D+"), 2 * MS)

    assert played(log) == ["3: 0[A+ B+]", "5: 0[. . C+ D+]"]
    assert [sent.reason for sent in log.sent] == ["minimum slot utilization"] * 2


def test_the_delay_counts_from_the_oldest_request(direct, story, played):
    scheduler = direct(slots=4, minimum_slot_utilization=1.0, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 3:B+ 9:C+ 15:D+"), 2 * MS)

    assert played(log) == ["10: 0[A+ B+ C+]", "25: 0[. . . D+]"]
    assert [sent.reason for sent in log.sent] == ["delay expired"] * 2


def test_a_request_that_is_cancelled_counts_for_no_slot(direct, story, played):
    scheduler = direct(slots=2, minimum_slot_utilization=1.0, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 1:B+", {"0:A+": {"leaves": 0.0005}}), 2 * MS)

    assert played(log) == ["11: 0[B+]"]


def test_a_share_of_slots_is_not_off_by_one_for_its_32_bits(direct, story):
    scheduler = direct(slots=5, minimum_slot_utilization=0.6000000238418579, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 1:B+ 2:C+"), 2 * MS)

    assert [sent.time for sent in log.sent] == [2 * MS]


def test_a_batch_of_all_slots_is_full(direct, story):
    scheduler = direct(minimum_slot_utilization=0.5, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 0:B+"), 2 * MS)

    assert [sent.reason for sent in log.sent] == ["full"]


def test_a_request_that_streams_does_not_hold_its_sequence_up(direct, story, played):
    log = simulate(direct(decoupled=True), story("0:A+ 1:A 2:A-", {"0:A+": {"streams": 1.0}}), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[A]", "10: 0[A-]"]


def test_where_a_state_comes_with_the_last_response_the_next_request_waits_for_that(direct, story, played):
    streaming = {"0:A+": {"streams": 0.02}}

    log = simulate(direct(decoupled=True, stateful=True), story("0:A+ 1:A 2:A- 3:B+-", streaming), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[. B+-]", "25: 0[A]", "30: 0[A-]"]


def test_a_request_that_waits_for_a_stream_does_not_count_as_one_that_may_run(direct, story, played):
    scheduler = direct(stateful=True, minimum_slot_utilization=1.0, max_queue_delay_microseconds=10_000)
    arrivals = story("0:A+ 0:B+ 1:A 12:C+- 13:B-", {"0:A+": {"streams": 0.1}, "1:A": {"leaves": 0.011}})

    log = simulate(scheduler, arrivals, 5 * MS)

    assert played(log) == ["0: 0[A+ B+]", "13: 0[C+- B-]"]
