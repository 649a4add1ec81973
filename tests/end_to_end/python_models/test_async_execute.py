"""An `async def execute`: what it leaves running, and streams of other models that it reads."""

import pytest

from .conftest import Ask
from .writing import DECOUPLED, PythonModel

_READ = """
async def answer_one(request):
    sender = request.get_response_sender()
    total = 0
    for response in await asked("together", value(request.inputs())).async_exec(decoupled=True):
        total += len(response.output_tensors())
    sender.send(answer(total), FINAL)

await asyncio.gather(*map(answer_one, requests))
"""
MODELS = {
    "in_tasks": PythonModel(
        """
        async def later(sender, number):
            await asyncio.sleep(0.01)
            sender.send(answer(10 * number), FINAL)

        self.tasks = [asyncio.create_task(later(each.get_response_sender(), value(each.inputs()))) for each in requests]
        """,
        definition="async def",
    ),
    "within": PythonModel(
        """
        for request in requests:
            await asyncio.sleep(0)
            request.get_response_sender().send(answer(10 * value(request.inputs())), FINAL)
        """,
        definition="async def",
    ),
    "slow": PythonModel(
        """
        def send(sender, count):
            for number in range(count):
                time.sleep(0.1)
                sender.send(answer(number))
            sender.send(flags=FINAL)

        for request in requests:
            threading.Thread(target=send, args=(request.get_response_sender(), value(request.inputs()))).start()
        """,
        config=DECOUPLED,
    ),
    "together": PythonModel(
        """
        for request in requests:
            self.arrived.append((request.get_response_sender(), value(request.inputs())))
        if len(self.arrived) == 8:
            for sender, count in self.arrived:
                for number in range(count):
                    sender.send(answer(number))
                sender.send(flags=FINAL)
        """,
        methods="def initialize(self, args):\n    self.arrived = []",
        config=DECOUPLED,
    ),
    "reading": PythonModel(_READ, definition="async def", config=DECOUPLED),
    "ticking": PythonModel(
        """
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.create_task(tick())
        responses = [each for each in await asked("slow", 3).async_exec(decoupled=True)]
        asked("within", 1).exec()
        ticking.cancel()
        return [answer(ticks) for _ in requests]
        """,
        definition="async def",
    ),
}


@pytest.mark.parametrize("model", ["in_tasks", "within"])
def test_a_coroutine_may_answer_by_its_sender_and_return_before_it_has(ask: Ask, model: str) -> None:
    assert [ask(model, number) for number in (1, 2, 3)] == [10, 20, 30]


def test_requests_that_read_streams_run_at_once(stream: Ask) -> None:
    """The streams begin when the last one is asked for."""
    assert stream("reading", [4] * 8, 8) == [4] * 8


def test_other_tasks_of_the_model_go_on_while_it_reads_a_stream_in_a_plain_loop(ask: Ask) -> None:
    assert ask("ticking", 1) > 3
