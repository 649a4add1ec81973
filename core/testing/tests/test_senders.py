"""The fake sender: it keeps what is sent, and holds a sender up as a slow reader does."""

import threading

import pytest

from naiad.backend import Reply
from naiad.errors import InternalError, InvalidArgumentError
from naiad_testing.backends import CollectingSender


def test_everything_that_is_sent_is_kept_in_order():
    sender = CollectingSender()
    first, second = Reply({"Y": 1}), InvalidArgumentError("no")

    sent = [sender.send(first), sender.send(second), sender.send(None, final=True)]

    assert sent == [True, True, True]
    assert sender.wait_until_ended() == [first, second]


def test_nothing_can_be_sent_after_the_end():
    sender = CollectingSender()
    sender.send(Reply({}), final=True)

    with pytest.raises(InternalError, match="after the last response"):
        sender.send(None, final=True)


def test_a_sender_waits_while_there_is_no_room():
    sender = CollectingSender(room=2)
    sending = threading.Thread(target=lambda: [sender.send(Reply({"Y": number})) for number in range(3)])
    sending.start()

    sender.wait_until_held_up()
    before = len(sender.replies)
    sender.take(2)
    sending.join(10)

    assert (before, len(sender.replies)) == (2, 3)


def test_room_can_be_waited_for_without_blocking():
    sender = CollectingSender(room=1)

    room = sender.post(Reply({}))
    waits = not room.done()
    sender.take()

    assert waits
    assert room.done()
    assert sender.post(None, final=True) is None


def test_a_caller_that_leaves_lets_the_sender_go():
    sender = CollectingSender(room=1)
    sent = []
    sending = threading.Thread(target=lambda: sent.append(sender.send(Reply({}))))
    sending.start()

    sender.wait_until_held_up()
    sender.leave()
    sending.join(10)

    assert sent == [False]
    assert sender.is_cancelled()


def test_waiting_for_what_does_not_come_ends():
    sender = CollectingSender(room=1)

    with pytest.raises(TimeoutError, match="no sender has had to wait"):
        sender.wait_until_held_up(timeout=0.001)
    with pytest.raises(TimeoutError, match="0 responses came"):
        sender.wait_until_ended(timeout=0.001)
