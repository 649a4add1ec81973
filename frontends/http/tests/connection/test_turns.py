"""How many requests are started in a turn of the event loop."""

from naiad_kit.frontends.turns import STARTED_PER_TURN

from .conftest import Connection, FakeLoop


def connections(context, count):
    loop = FakeLoop()
    return loop, [Connection(context, loop=loop) for _ in range(count)]


def test_a_turn_starts_its_share_over_all_connections_in_the_order_of_their_bytes(make_context, fake_server, infer):
    fake_server.at_once = True
    loop, clients = connections(make_context(), 200)

    for number, client in enumerate(clients):
        client.send(infer(request_id=str(number)))
    started = [len(fake_server.calls)]
    while started[-1] < 200:
        loop.turn()
        started.append(len(fake_server.calls))

    assert started == [64, 128, 192, 200]
    assert [call.request.id for call in fake_server.calls] == [str(number) for number in range(200)]
    assert [len(client.answers()) for client in clients] == [1] * 200


def test_a_client_that_pipelines_takes_its_turn_behind_others(make_context, fake_server, infer):
    fake_server.at_once = True
    loop, (greedy, other) = connections(make_context(), 2)

    greedy.send(infer(request_id="greedy") * 300)
    other.send(infer(request_id="other"))
    loop.turn()

    assert [call.request.id for call in fake_server.calls[64:66]] == ["greedy", "other"]
    assert len(fake_server.calls) == 2 * STARTED_PER_TURN


def test_under_light_load_every_request_starts_at_once(make_context, fake_server, infer):
    fake_server.at_once = True
    loop, (client,) = connections(make_context(), 1)

    late = []
    for number in range(1, 1000):
        client.send(infer())
        late.append(number - len(fake_server.calls))
        loop.turn()

    assert set(late) == {0}


def test_the_request_of_a_client_that_left_before_its_turn_is_not_started(make_context, fake_server, infer):
    fake_server.at_once = True
    loop, clients = connections(make_context(), STARTED_PER_TURN + 3)
    for client in clients:
        client.send(infer())

    clients[-3].protocol.connection_lost(None)
    clients[-2].protocol.eof_received()
    loop.turn()

    assert len(fake_server.calls) == STARTED_PER_TURN + 1
    assert len(clients[-1].answers()) == 1
