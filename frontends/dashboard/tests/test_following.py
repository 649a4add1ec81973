"""Following requests for the page of the slowest ones."""

from naiad.errors import InternalError
from naiad_dashboard.following import Follower


class Tracing:
    """Offers the next request, as a tracing service does."""

    def __init__(self):
        self.begin = None

    def follow_next(self, begin):
        self.begin = begin

    def request(self, model="m"):
        begin, self.begin = self.begin, None
        return begin and begin(model, 1, None)


async def test_requests_are_followed_only_while_somebody_looks():
    tracing = Tracing()
    follower = Follower(tracing)
    assert tracing.request() is None

    follower.enter()
    trace = tracing.request()
    follower.leave()

    assert trace is not None
    assert tracing.request() is None


async def test_a_burst_is_not_followed_whole():
    tracing = Tracing()
    follower = Follower(tracing)
    follower.enter()

    traces = [tracing.request() for _ in range(1000)]
    follower.leave()

    assert follower.followed == sum(trace is not None for trace in traces) == 10


async def test_the_slowest_are_kept_with_their_errors_and_once_each():
    follower = Follower(tracing := Tracing())
    follower.enter()
    for index in range(8):
        trace = tracing.request(f"m{index}")
        trace.started_ns -= index * 1_000_000_000
        if index == 7:
            trace.responded(InternalError("it broke"))
        trace.end()
        trace.end()
    follower.leave()

    slowest = follower.slowest(3)
    assert [each.model for each in slowest] == ["m7", "m6", "m5"]
    assert [each.error for each in slowest] == ["it broke", "", ""]
    assert slowest[0].seconds >= 7
    assert len(follower.slowest(100)) == 8


async def test_memory_is_bounded_however_many_requests_end():
    follower = Follower(Tracing())
    for _ in range(500):
        trace = follower._begin("m", 1, None)
        trace.end()

    assert len(follower.slowest(1000)) == 20
