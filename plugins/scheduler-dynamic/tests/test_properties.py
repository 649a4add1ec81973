"""Any settings and any history: the published conformance check holds, and so do the batcher's own promises."""

from hypothesis import given, settings
from hypothesis import strategies as st

from naiad.scheduler import DropReason
from naiad_config import ModelConfig, ModelDynamicBatching, ModelQueuePolicy, TimeoutAction
from naiad_scheduler_dynamic.factory import DynamicBatching
from naiad_testing.history import Arrival
from naiad_testing.schedulers import check_scheduler
from naiad_testing.simulation import simulate

MICROSECOND = 1e-6
LEVELS = 3

policies = st.builds(
    ModelQueuePolicy,
    timeout_action=st.sampled_from(TimeoutAction),
    default_timeout_microseconds=st.sampled_from((0, 0, 700, 5000)),
    allow_timeout_override=st.booleans(),
    max_queue_size=st.sampled_from((0, 0, 1, 4)),
)


@st.composite
def configurations(draw):
    limit = draw(st.sampled_from((0, 4, 8, 8)))
    levels = draw(st.sampled_from((0, 1, LEVELS)))
    batching = ModelDynamicBatching(
        preferred_batch_size=tuple(draw(st.lists(st.integers(1, max(1, limit)), max_size=3, unique=True))),
        max_queue_delay_microseconds=draw(st.sampled_from((0, 300, 4000))),
        priority_levels=levels,
        default_priority_level=draw(st.integers(1, levels)) if levels else 0,
        default_queue_policy=draw(st.none() | st.none() | policies),
        priority_queue_policy=draw(st.dictionaries(st.integers(1, max(1, levels)), policies, max_size=levels)),
    )
    return ModelConfig(name="model", max_batch_size=limit, dynamic_batching=batching)


@st.composite
def histories(draw, limit):
    requests = st.tuples(
        st.sampled_from((0, 0, 100, 900, 6000)),  # microseconds since the one before
        st.sampled_from((1, 1, 1, 2, 3, max(1, limit))),
        st.sampled_from((None, None, None, None, "wide")),
        st.integers(0, LEVELS + 1),
        st.sampled_from((0.0, 0.0, 0.0005, 0.002)),
        st.sampled_from((None, None, None, None, 0.0, 0.0005, 0.01)),
    )
    now, arrivals = 0.0, []
    for gap, size, shape, priority, timeout, stays in draw(st.lists(requests, min_size=3, max_size=30)):
        now += gap * MICROSECOND
        leaves = None if stays is None else now + stays
        arrivals.append(Arrival(now, min(size, max(1, limit)), shape, priority, timeout, leaves))
    return tuple(arrivals)


@st.composite
def cases(draw):
    config = draw(configurations())
    return config, draw(histories(config.max_batch_size))


def make(config):
    return DynamicBatching().create(config, instances=2)


def level_of(config, arrival):
    batching = config.dynamic_batching
    if not batching.priority_levels:
        return 0
    return arrival.priority if 1 <= arrival.priority <= batching.priority_levels else batching.default_priority_level


def policy_of(config, arrival):
    batching = config.dynamic_batching
    own = batching.priority_queue_policy.get(level_of(config, arrival)) if batching.priority_levels else None
    return own or batching.default_queue_policy or ModelQueuePolicy()


def timeout_of(config, arrival):
    policy = policy_of(config, arrival)
    default = policy.default_timeout_microseconds / 1e6
    timeout = arrival.timeout if policy.allow_timeout_override else 0.0
    return min((seconds for seconds in (default, timeout) if seconds), default=None)


def lane(config, arrival):
    delays = policy_of(config, arrival).timeout_action is TimeoutAction.DELAY and timeout_of(config, arrival)
    return object() if delays else level_of(config, arrival)


def deadline(config, arrival):
    timeout = timeout_of(config, arrival)
    rejects = policy_of(config, arrival).timeout_action is TimeoutAction.REJECT
    return arrival.time + timeout if timeout and rejects else None


@settings(max_examples=100)
@given(cases())
def test_the_contract_of_a_scheduler_holds(case):
    config, history = case

    check_scheduler(
        lambda: make(config),
        max_batch_size=config.max_batch_size,
        histories=[history],
        service_time=lambda size: 0.001 + size * 0.0001,
        lane=lambda arrival: lane(config, arrival),
        deadline=lambda arrival: deadline(config, arrival),
    )


@settings(max_examples=50)
@given(cases())
def test_with_an_instance_always_idle_no_request_waits_longer_than_the_delay(case):
    config, history = case

    log = simulate(make(config), history, 0.0, instances=2)

    delay = config.dynamic_batching.max_queue_delay_microseconds * MICROSECOND
    waits = [sent.time - log.arrival_of(ticket).time for sent in log.sent for ticket in sent.tickets]
    assert max(waits, default=0.0) <= delay + 1e-9


@settings(max_examples=50)
@given(cases())
def test_a_batch_that_could_still_improve_is_not_sent_before_its_delay(case):
    config, history = case

    log = simulate(make(config), history, 0.001)

    delay = config.dynamic_batching.max_queue_delay_microseconds * MICROSECOND
    early = [sent for sent in log.sent if sent.reason == "delay expired"]
    for sent in early:
        assert sent.time - min(log.arrival_of(ticket).time for ticket in sent.tickets) >= delay - 1e-9


class Forgetful:
    """The same batcher, but it forms every batch anew at every question."""

    def __init__(self, scheduler):
        self._scheduler = scheduler
        self.arrive, self.settle = scheduler.arrive, scheduler.settle

    def decide(self, now, idle):
        self._scheduler._open.put_back(self._scheduler._queue)
        return self._scheduler.decide(now, idle)


@settings(max_examples=50)
@given(cases())
def test_what_is_remembered_between_questions_changes_no_answer(case):
    config, history = case

    log = simulate(make(config), history, 0.001, instances=2)
    anew = simulate(Forgetful(make(config)), history, 0.001, instances=2)

    assert log == anew


@settings(max_examples=50)
@given(cases())
def test_only_a_full_queue_refuses_and_only_at_the_arrival(case):
    config, history = case

    log = simulate(make(config), history, 0.001)

    refused = [entry for entry in log.dropped if entry.reason is DropReason.QUEUE_FULL]
    for entry in refused:
        arrival = log.arrival_of(entry.tickets[0])
        assert entry.time == arrival.time
        assert policy_of(config, arrival).max_queue_size > 0
