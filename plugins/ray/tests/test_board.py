"""The control plane's desired state, without Ray and without a clock."""

from naiad.reports import Readiness
from naiad_ray.board import EVERY_GROUP, LOST_SECONDS, Board, Question, Result
from naiad_ray.raw import HttpRequest, RawAnswer

LOAD = HttpRequest("POST", b"/v2/repository/models/m/load", b"", (), b"{}")
UNLOAD = HttpRequest("POST", b"/v2/repository/models/m/unload", b"", (), b"{}")
INDEX = Question("index")
FINE = RawAnswer(200)


def board_with(*replicas: str) -> Board:
    board = Board()
    for replica in replicas:
        board.join("g", replica, (), 0.0)
    return board


def test_an_order_waits_for_every_replica_of_its_group() -> None:
    board = board_with("a", "b")
    board.join("other", "c", (), 0.0)
    order = board.publish("g", LOAD, "model m", 0.0)

    board.report("a", order.number, FINE)
    assert board.waits(order.number)
    board.report("b", order.number, FINE)

    assert not board.waits(order.number)
    assert board.close(order.number) == Result({"a": FINE, "b": FINE})


def test_an_order_for_every_group_reaches_all() -> None:
    board = board_with("a")
    board.join("other", "c", (), 0.0)

    order = board.publish(EVERY_GROUP, LOAD, "", 0.0)

    assert board.orders("g", 0) == board.orders("other", 0) == [order]


def test_a_replica_gets_each_order_once() -> None:
    board = board_with("a")
    first = board.publish("g", LOAD, "", 0.0)
    second = board.publish("g", INDEX, "", 0.0)

    assert board.orders("g", 0) == [first, second]
    assert board.orders("g", first.number) == [second]


def test_a_replica_that_falls_silent_with_an_order_is_named_and_no_order_waits_for_it() -> None:
    board = board_with("a", "b")
    order = board.publish("g", LOAD, "model m", 0.0)
    board.report("a", order.number, FINE)
    board.seen("b", order.number, 0.1)

    board.seen("a", order.number, LOST_SECONDS)
    board.expire(LOST_SECONDS + 1)

    assert board.close(order.number) == Result({"a": FINE}, ("b",))
    assert board.members("g", LOST_SECONDS + 1) == ["a"]


def test_a_replica_that_had_ended_before_an_order_reached_it_is_no_failure_of_the_order() -> None:
    board = board_with("a", "b")
    board.seen("b", 0, 0.5)
    order = board.publish("g", LOAD, "model m", 1.0)
    board.report("a", order.number, FINE)

    board.seen("a", order.number, LOST_SECONDS)
    board.expire(LOST_SECONDS + 1)

    assert board.close(order.number) == Result({"a": FINE})


def test_no_order_waits_for_a_replica_that_ray_ends() -> None:
    board = board_with("a", "b")
    order = board.publish("g", LOAD, "", 0.0)
    board.seen("b", order.number, 0.1)

    board.leave("b")
    board.report("a", order.number, FINE)

    assert board.close(order.number) == Result({"a": FINE})


def test_a_replica_without_an_answer_in_time_is_named_in_the_result() -> None:
    board = board_with("a", "b")
    order = board.publish("g", LOAD, "", 0.0)
    board.report("a", order.number, FINE)

    assert board.close(order.number).lost == ("b",)


def test_one_replica_that_is_ready_answers_for_its_group() -> None:
    board = board_with("a", "b", "c")
    order = board.publish("g", Question("readiness"), "", 0.0)

    board.report("a", order.number, Readiness(False, ("model m failed",)))
    assert board.waits(order.number)
    board.report("b", order.number, Readiness(True, ()))

    assert not board.waits(order.number)


def test_a_new_replica_gets_the_last_order_of_each_key() -> None:
    board = board_with("a")
    for payload in (LOAD, UNLOAD):
        order = board.publish("g", payload, "model m", 0.0)
        board.close(order.number)
        board.keep(order)

    assert [each.payload for each in board.join("g", "b", (), 1.0)] == [UNLOAD]
    assert board.join("other", "c", (), 1.0) == []


def test_a_new_replica_gets_the_orders_that_are_being_carried_out() -> None:
    board = board_with("a")
    order = board.publish("g", LOAD, "model m", 0.0)
    board.publish("g", INDEX, "", 0.0)

    assert board.join("g", "b", (), 1.0) == [order]


def test_a_control_plane_that_lost_its_state_gets_it_back_from_the_replicas() -> None:
    board = board_with("a")
    order = board.publish("g", LOAD, "model m", 0.0)
    board.close(order.number)
    board.keep(order)
    fresh = Board()

    assert not fresh.seen("a", 1, 1.0)
    fresh.join("g", "a", [order], 1.0)

    assert fresh.join("g", "b", (), 1.0) == [order]
    assert fresh.publish("g", UNLOAD, "model m", 1.0).number > order.number


def test_a_late_report_changes_nothing() -> None:
    board = board_with("a")
    order = board.publish("g", LOAD, "", 0.0)
    board.close(order.number)

    board.report("a", order.number, FINE)

    assert not board.waits(order.number)
