"""The published check of caches: the fake passes it, and each way to break the contract is found."""

from collections.abc import Callable

import numpy as np
import pytest

from naiad_kit.caches import CachedResponse, CacheReport
from naiad_tensors.tensors import Tensor
from naiad_testing.caches import ContractBroken, FakeCache, check_cache

Deliver = Callable[[CachedResponse | None], None]


class Forgetful(FakeCache):
    def insert(self, key: bytes, response: CachedResponse) -> None:
        return None


class Silent(FakeCache):
    def lookup(self, key: bytes, deliver: Deliver) -> None:
        return None


class Talkative(FakeCache):
    def lookup(self, key: bytes, deliver: Deliver) -> None:
        super().lookup(key, deliver)
        super().lookup(key, deliver)


class Generous(FakeCache):
    def lookup(self, key: bytes, deliver: Deliver) -> None:
        deliver(CachedResponse((), {}, 1))


class Loyal(FakeCache):
    def insert(self, key: bytes, response: CachedResponse) -> None:
        self.entries.setdefault(key, response)


class Loose(FakeCache):
    def insert(self, key: bytes, response: CachedResponse) -> None:
        outputs = [Tensor(each.name, each.datatype, each.shape, each.array.copy()) for each in response.outputs]
        super().insert(key, CachedResponse.over(tuple(outputs), response.parameters))


class Rounding(FakeCache):
    def insert(self, key: bytes, response: CachedResponse) -> None:
        parameters = {name: int(value) if value is True else value for name, value in response.parameters.items()}
        super().insert(key, CachedResponse.over(response.outputs, parameters))


class Flattening(FakeCache):
    def insert(self, key: bytes, response: CachedResponse) -> None:
        flat = [Tensor(each.name, each.datatype, (each.array.size,), each.array.ravel()) for each in response.outputs]
        super().insert(key, CachedResponse.copied(flat, response.parameters))


class Uncounted(FakeCache):
    def report(self) -> CacheReport:
        return CacheReport()


class Constant(FakeCache):
    def report(self) -> CacheReport:
        return CacheReport(lookups=1, hits=1)


class Repeating(FakeCache):
    """Answers a lookup again when the next one comes."""

    earlier: Callable[[], None] | None = None

    def lookup(self, key: bytes, deliver: Deliver) -> None:
        if self.earlier is not None:
            self.earlier()
        self.earlier = lambda: deliver(None)
        super().lookup(key, deliver)


class Undying(FakeCache):
    def close(self) -> None:
        return None


def test_the_fake_keeps_the_contract() -> None:
    check_cache(FakeCache)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Forgetful, "was inserted and is not there"),
        (Silent, "was not answered within"),
        (Talkative, "was answered 2 times"),
        (Generous, "a key that was not inserted finds something"),
        (Loyal, "differs from the inserted one"),
        (Loose, "can be written to"),
        (Rounding, "the parameters are"),
        (Flattening, "the outputs are"),
        (Uncounted, "of which found something, the report is"),
        (Constant, "of which found something, the report is"),
        (Repeating, "was answered 2 times"),
        (Undying, "a closed cache still finds something"),
    ],
)
def test_each_way_to_break_the_contract_is_found(broken: type[FakeCache], message: str) -> None:
    with pytest.raises(ContractBroken, match=message):
        check_cache(broken, patience=0.02)


def test_a_copy_of_a_response_is_not_shared_and_cannot_be_written_to() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    texts = np.array([b"a", b"b"], dtype=object)

    copy = CachedResponse.copied([Tensor.of("a", array), Tensor.of("t", texts)], {"p": "text"})
    array[0, 0], texts[0] = 99, b"changed"

    floats, strings = (each.array for each in copy.outputs)
    assert floats.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert strings.tolist() == [b"a", b"b"]
    for each in (floats, strings):
        with pytest.raises(ValueError, match="read-only"):
            each[0] = each[1]
        with pytest.raises(ValueError, match="WRITEABLE"):
            each.flags.writeable = True
