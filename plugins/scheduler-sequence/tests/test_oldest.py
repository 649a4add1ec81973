"""The oldest strategy: candidates, batches out of the oldest requests, preferred sizes and delays."""

import pytest

from naiad_testing.simulation import simulate

MS = 1e-3


def test_a_batch_holds_the_oldest_requests_in_the_order_of_their_arrival(oldest, story, played):
    log = simulate(oldest(max_batch_size=3), story("0:A+ 1:C+ 2:B+ 3:D+ 4:A 4.5:C"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[C+ B+ D+]", "10: 0[A C]"]


def test_two_requests_of_a_sequence_are_never_in_one_batch(oldest, story, played):
    log = simulate(oldest(max_batch_size=4), story("0:A+ 1:B+ 1:B 1:B- 1:A-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[B+ A-]", "10: 0[B]", "15: 0[B-]"]


def test_an_instance_has_no_more_candidates_than_allowed(oldest, story, played):
    scheduler = oldest(max_batch_size=8, max_candidate_sequences=2)

    log = simulate(scheduler, story("0:A+ 0:B+ 0:C+ 0:D+- 10:A- 20:B- 30:C-"), 5 * MS)

    assert played(log) == ["0: 0[A+ B+]", "10: 0[A-]", "15: 0[C+]", "20: 0[B-]", "25: 0[D+-]", "30: 0[C-]"]


def test_without_a_number_of_candidates_there_is_one(oldest, story, played):
    log = simulate(oldest(max_candidate_sequences=0), story("0:A+ 0:B+- 10:A-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "10: 0[A-]", "15: 0[B+-]"]


def test_candidates_fill_the_instances_evenly(oldest, story, played):
    log = simulate(oldest(instances=2), story("0:A+ 0:B+ 0:C+ 0:D+"), 5 * MS, instances=2)

    assert played(log) == ["0: 0[A+ C+]", "0: 1[B+ D+]"]


def test_a_preferred_size_goes_at_once_and_the_rest_waits_for_its_delay(oldest, story, played):
    scheduler = oldest(max_batch_size=8, preferred_batch_size=(2, 4), max_queue_delay_microseconds=6000)

    log = simulate(scheduler, story("0:A+ 1:B+ 1:C+"), 0.5 * MS)

    assert played(log) == ["1: 0[A+ B+]", "7: 0[C+]"]
    assert [sent.reason for sent in log.sent] == ["preferred size", "delay expired"]


def test_what_a_late_batch_takes_along_may_pass_the_preferred_sizes(oldest, story, played):
    scheduler = oldest(
        max_batch_size=8, max_candidate_sequences=8, preferred_batch_size=(4,), max_queue_delay_microseconds=6000
    )

    log = simulate(scheduler, story("0:X+ 1:A+ 1:B+ 1:C+ 1:D+ 1:E+"), 8 * MS)

    assert played(log) == ["1: 0[X+ A+ B+ C+]", "9: 0[D+ E+]"]
    assert [sent.reason for sent in log.sent] == ["preferred size", "delay expired"]


def test_a_full_batch_says_so(oldest, story):
    log = simulate(oldest(max_queue_delay_microseconds=6000), story("0:A+ 0:B+"), 5 * MS)

    assert [(sent.time, sent.reason) for sent in log.sent] == [(0.0, "full")]


def test_requests_of_different_shapes_never_share_a_batch(oldest, story, played):
    scheduler = oldest(max_batch_size=4, max_queue_delay_microseconds=50_000)

    log = simulate(scheduler, story("0:A+ 0:B+ 0:C+", {"0:B+": {"shape_key": "wide"}}), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[B+]", "50: 0[C+]"]
    assert [sent.reason for sent in log.sent] == ["shape changed", "shape changed", "delay expired"]


def test_a_request_that_was_held_back_by_its_sequence_goes_before_younger_ones(oldest, story, played):
    scheduler = oldest(preferred_batch_size=(2,), max_queue_delay_microseconds=50_000)
    words = story("0:A+ 0:B+ 1:A 2:C+ 2:B")

    log = simulate(scheduler, words, 5 * MS)

    assert [sent.tickets for sent in log.sent] == [(1, 2), (3, 4), (5,)]


def test_an_older_request_comes_before_those_that_wait_in_a_batch(oldest, story):
    scheduler = oldest(max_batch_size=4, max_queue_delay_microseconds=50_000, decoupled=True, preserve_ordering=True)
    arrivals = story("0:A+ 1:A 60:B+ 61:C+", {"0:A+": {"streams": 0.03}})

    log = simulate(scheduler, arrivals, 5 * MS)

    assert [sent.tickets for sent in log.sent] == [(1,), (2, 3, 4)]


def test_preserve_ordering_is_passed_to_the_kernel(oldest, direct):
    assert oldest(preserve_ordering=True).orders_dispatches is True
    assert oldest().orders_dispatches is False
    assert direct().orders_dispatches is False


def test_a_decoupled_model_may_get_the_next_request_while_it_still_streams(oldest, story, played):
    streaming = {"0:A+": {"streams": 0.1}}

    free = simulate(oldest(decoupled=True), story("0:A+ 1:A 2:A-", streaming), 5 * MS)
    ordered = simulate(oldest(decoupled=True, preserve_ordering=True), story("0:A+ 1:A 2:A-", streaming), 5 * MS)
    stateful = simulate(oldest(decoupled=True, stateful=True), story("0:A+ 1:A 2:A-", streaming), 5 * MS)

    assert played(free) == ["0: 0[A+]", "5: 0[A]", "10: 0[A-]"]
    assert played(ordered) == played(stateful) == ["0: 0[A+]", "105: 0[A]", "110: 0[A-]"]


def test_a_candidate_keeps_its_slot_until_its_last_response_is_out(oldest, story, played):
    scheduler = oldest(max_candidate_sequences=1, decoupled=True)

    log = simulate(scheduler, story("0:A+- 0:B+-", {"0:A+-": {"streams": 0.1}}), 5 * MS)

    assert played(log) == ["0: 0[A+-]", "105: 0[B+-]"]


@pytest.mark.parametrize("max_batch_size", [0, 1])
def test_a_model_without_batches_takes_the_oldest_request(oldest, story, played, max_batch_size):
    log = simulate(oldest(max_batch_size=max_batch_size), story("0:A+ 1:B+ 2:A-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[B+]", "10: 0[A-]"]


def test_a_request_that_is_cancelled_leaves_the_batch_that_waits(oldest, story, played):
    scheduler = oldest(max_batch_size=4, max_queue_delay_microseconds=10_000)

    log = simulate(scheduler, story("0:A+ 1:B+ 3:C+", {"0:A+": {"leaves": 0.002}}), 5 * MS)

    assert played(log) == ["11: 0[B+ C+]"]
