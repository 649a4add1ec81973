"""START and END: when a sequence begins, restarts and ends; and what no sequence can take."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_config import DataType, ModelConfig, ModelSequenceBatching, SequenceControl, SequenceControlInput
from naiad_config.sequences import SequenceControlKind
from naiad_scheduler_sequence.factory import SequenceBatching
from naiad_testing.simulation import simulate

MS = 1e-3


def test_a_start_for_a_sequence_that_lives_restarts_it_in_its_slot(direct, story):
    log = simulate(direct(), story("0:A+ 0:B+ 10:B+ 20:B-"), 5 * MS)

    rows = [sent.rows[1] for sent in log.sent]
    assert [(row.sequence, row.start, row.end) for row in rows] == [
        (2, True, False),
        (2, True, False),
        (2, False, True),
    ]


def test_an_id_is_free_as_soon_as_its_last_request_has_come(direct, story, played):
    log = simulate(direct(), story("0:A+ 1:A- 2:A+-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[A- A+-]"]
    assert [row.sequence for row in log.sent[1].rows] == [1, 2]


def test_an_id_that_is_reused_runs_in_its_old_slot_once_that_is_free(direct, story, played):
    log = simulate(direct(slots=1), story("0:A+- 7:A+-"), 5 * MS)

    assert played(log) == ["0: 0[A+-]", "7: 0[A+-]"]
    assert [sent.rows[0].sequence for sent in log.sent] == [1, 2]


def test_a_request_after_the_last_one_is_refused(direct, story):
    log = simulate(direct(), story("0:A+ 1:A- 2:A"), 5 * MS)

    (refusal,) = log.dropped
    assert refusal.tickets == (3,)
    assert "sequence A to model" in refusal.detail


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
@pytest.mark.parametrize(
    ("ticket", "words"),
    [
        (Ticket(1, 0.0, 2, sequence_id=7, sequence_start=True), "must specify batch-size 1 due to requirements of"),
        (Ticket(1, 0.0, sequence_start=True), "must specify a non-zero or non-empty correlation ID"),
        (Ticket(1, 0.0, sequence_id="", sequence_start=True), "must specify a non-zero or non-empty correlation ID"),
        (Ticket(1, 0.0, sequence_id=7), "inference request for sequence 7 to model 'model' must specify the START"),
        (Ticket(1, 0.0, sequence_id="x", sequence_end=True), "sequence x to model 'model' must specify the START"),
    ],
)
def test_what_no_sequence_can_take_is_refused_on_arrival(request, strategy, ticket, words):
    scheduler = request.getfixturevalue(strategy)()

    refusal = scheduler.arrive(ticket)

    assert (refusal.tickets, refusal.reason) == ((1,), DropReason.INVALID)
    assert words in refusal.detail


def test_a_message_is_short_however_long_the_id_is(direct):
    refusal = direct().arrive(Ticket(1, 0.0, sequence_id="x" * 100_000))

    assert f"for sequence {'x' * 128}… to model" in refusal.detail
    assert len(refusal.detail) < 400


def controlled(data_type):
    control = SequenceControl(kind=SequenceControlKind.CONTROL_SEQUENCE_CORRID, data_type=data_type)
    batching = ModelSequenceBatching(control_input=(SequenceControlInput(name="CORRID", control=(control,)),))
    return SequenceBatching().create(ModelConfig(name="model", sequence_batching=batching), 1)


@pytest.mark.parametrize(
    ("data_type", "good", "bad"),
    [
        (DataType.TYPE_UINT64, 2**64 - 1, "a"),
        (DataType.TYPE_INT32, 2**40, "7"),
        (DataType.TYPE_STRING, "7", 7),
    ],
)
def test_a_correlation_id_has_the_type_of_the_tensor_that_tells_it(data_type, good, bad):
    scheduler = controlled(data_type)

    taken = scheduler.arrive(Ticket(1, 0.0, sequence_id=good, sequence_start=True))
    refused = scheduler.arrive(Ticket(2, 0.0, sequence_id=bad, sequence_start=True))

    assert taken is None
    assert refused is not None
    assert "CONTROL_SEQUENCE_CORRID tensor takes" in refused.detail
    assert repr(bad) in refused.detail


def test_a_number_and_its_text_are_two_sequences_where_the_model_is_not_reported(direct, story):
    scheduler = direct()

    log = simulate(scheduler, story("0:A+ 0:B+", {"0:A+": {"sequence_id": 7}, "0:B+": {"sequence_id": "7"}}), 5 * MS)

    assert [row.sequence for row in log.sent[0].rows] == [1, 2]
