"""The worked examples of the sequence batcher's documents, step by step."""

import asyncio

import numpy as np

import naiad_scheduler_sequence
from naiad import Request, Server, Tensor
from naiad.scheduler import Ticket
from naiad_config.text import parse_text
from naiad_kit.sequences import Row
from naiad_scheduler_sequence.factory import SequenceBatching
from naiad_testing.backends import FakeBackend
from naiad_testing.simulation import simulate

MS = 1e-3

DIRECT = """
name: "direct_stateful_model"
platform: "tensorrt_plan"
max_batch_size: 2
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  direct { }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] }
  ]
}
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 100, 100 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 10 ] } ]
instance_group [ { count: 2 } ]
"""

OLDEST = """
name: "oldest_stateful_model"
platform: "tensorflow_savedmodel"
max_batch_size: 2
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  oldest { max_candidate_sequences: 4 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 100, 100 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 10 ] } ]
"""

SIX_SEQUENCES = """
 0:S0+  1:S1+  2:S2+  3:S3+  4:S4+  5:S5+
10:S0  11:S1- 12:S2  13:S3  14:S4  15:S5-
20:S0         22:S2- 23:S3  24:S4-
30:S0-               33:S3-
"""


def batcher(text, instances):
    return SequenceBatching().create(parse_text(text), instances)


def test_six_sequences_share_the_four_slots_of_two_instances(story, played):
    log = simulate(batcher(DIRECT, 2), story(SIX_SEQUENCES), 3 * MS, instances=2)

    assert played(log) == [
        # the first four sequences get slots: 0 and 1 the first of both instances, 2 and 3 the second; 4 and 5 have none
        "0: 0[S0+]",
        "1: 1[S1+]",
        "3: 0[. S2+]",
        "4: 1[. S3+]",
        # sequence 1 ends: its slot goes to sequence 4, which has waited longest
        "10: 0[S0]",
        "11: 1[S1-]",
        "13: 0[. S2]",
        "14: 1[S4+ S3]",
        "17: 1[S4]",
        # sequence 2 ends: its slot goes to sequence 5, whose requests have both come meanwhile
        "20: 0[S0]",
        "23: 1[. S3]",
        "23: 0[. S2-]",
        "26: 0[. S5+]",
        "26: 1[S4-]",
        "29: 0[. S5-]",
        # no sequence waits for a slot any more; they stay empty
        "32: 0[S0-]",
        "33: 1[. S3-]",
    ]
    assert log.stranded == ()


def test_the_slot_of_a_sequence_that_ends_is_at_once_the_next_ones():
    scheduler = batcher(DIRECT, 1)
    for number, name in enumerate(("S0", "S1", "S2"), 1):
        scheduler.arrive(Ticket(number, 0.0, sequence_id=name, sequence_start=True, sequence_end=name == "S0"))
    first = scheduler.decide(0.0, (0,)).dispatches[0]

    scheduler.settle((1, 2), 1.0)
    second = scheduler.decide(1.0, (0,)).dispatches[0]

    assert first.rows == (Row(1, 1, start=True, end=True), Row(2, 2, start=True))
    assert second.rows == (Row(3, 3, start=True),)


def test_start_and_ready_show_the_model_what_its_two_slots_hold(story):
    """One instance, a sequence in each slot; the columns are what the tensors hold in each execution."""
    arrivals = story("0:A+ 10:A 10:B+ 20:B 30:A 30:B 40:A- 50:B-")

    log = simulate(batcher(DIRECT, 1), arrivals, 5 * MS)

    tensors = [
        (round(sent.time / MS), [int(row.start) for row in sent.rows], [int(row.ticket > 0) for row in sent.rows])
        for sent in log.sent
    ]
    assert tensors == [
        # time, START, READY
        (0, [1], [1]),  # slot 0 has its first request; nothing is in slot 1 yet
        (10, [0, 1], [1, 1]),  # two requests close together: a batch of both, and only slot 1 starts
        (20, [0, 0], [0, 1]),  # only slot 1 has a request: row 0 is there, and not ready
        (30, [0, 0], [1, 1]),
        (40, [0], [1]),  # slot 0 ends; slot 1 has no request, and no row behind it has one
        (50, [0, 0], [0, 1]),
    ]


async def test_the_model_gets_these_tensors_when_it_is_served(tmp_path):
    """The same steps, each awaited, in a server: what the model of the configuration is given, and its type."""
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.zeros((batch.size, 10), np.float32)})
    backend.write(
        tmp_path, "direct_stateful_model", DIRECT.replace('platform: "tensorrt_plan"', "").replace("2 }", "1 }")
    )

    def step(name, mark=""):
        inputs = {"INPUT": Tensor.of("INPUT", np.zeros((1, 100, 100), np.float32))}
        flags = {"sequence_start": "+" in mark, "sequence_end": "-" in mark}
        return server.infer(Request("direct_stateful_model", inputs, correlation_id=name, **flags))

    async with Server(model_repository=[tmp_path], plugins=[backend, naiad_scheduler_sequence]) as server:
        await step("A", "+")
        await asyncio.gather(step("A"), step("B", "+"))
        await step("B")
        await asyncio.gather(step("A"), step("B"))
        await step("A", "-")
        await step("B", "-")

    controls = [(batch.input("START"), batch.input("READY")) for batch in backend.batches]
    assert [(start.ravel().tolist(), ready.ravel().tolist()) for start, ready in controls] == [
        ([1], [1]),
        ([0, 1], [1, 1]),
        ([0, 0], [0, 1]),
        ([0, 0], [1, 1]),
        ([0], [1]),
        ([0, 0], [0, 1]),
    ]
    assert {(array.dtype.name, array.shape[1:]) for pair in controls for array in pair} == {("float32", (1,))}


def test_four_candidates_make_batches_of_two_out_of_the_oldest_requests(story, played):
    """Requests of all sequences come at the same rate, 1 just before 2, 2 before 3, 3 before 4."""
    arrivals = story("0:1+ 1:2+ 2:3+ 3:4+ 4:1 5:2 6:3 7:4 8:1- 9:2- 10:3- 11:4 12:4-")

    log = simulate(batcher(OLDEST, 1), arrivals, 4 * MS)

    assert played(log) == [
        "0: 0[1+]",
        "4: 0[2+ 3+]",
        "8: 0[4+ 1]",
        "12: 0[2 3]",
        "16: 0[4 1-]",
        "20: 0[2- 3-]",
        "24: 0[4]",  # the last two of 4 do not share a batch
        "28: 0[4-]",
    ]


def test_candidates_that_are_all_there_at_once_go_in_pairs(story, played):
    arrivals = story("0:1+ 0:2+ 0:3+ 0:4+ 0:1 0:2 0:3 0:4 0:1- 0:2- 0:3- 0:4 0:4-")

    log = simulate(batcher(OLDEST, 1), arrivals, 4 * MS)

    assert played(log) == [
        "0: 0[1+ 2+]",
        "4: 0[3+ 4+]",
        "8: 0[1 2]",
        "12: 0[3 4]",
        "16: 0[1- 2-]",
        "20: 0[3- 4]",
        "24: 0[4-]",
    ]


def test_a_fifth_sequence_is_a_candidate_when_one_of_the_four_is_complete(story, played):
    arrivals = story("0:1+ 0:2+ 0:3+ 0:4+ 1:5+ 2:5- 10:1- 20:2-")

    log = simulate(batcher(OLDEST, 1), arrivals, 4 * MS)

    assert played(log) == ["0: 0[1+ 2+]", "4: 0[3+ 4+]", "10: 0[1-]", "14: 0[5+]", "18: 0[5-]", "22: 0[2-]"]


def test_the_examples_give_ids_of_the_type_that_they_say():
    scheduler = batcher(OLDEST, 1)

    refusal = scheduler.arrive(Ticket(1, 0.0, sequence_id="a text", sequence_start=True))

    assert refusal is not None
    assert "takes a number" in refusal.detail
