"""The events of an answer, as tests look at them."""

import json


def texts(answer):
    """The texts of the events of a stream; an error stands as it is."""
    events = answer.body.decode().split("\n\n")
    assert events.pop() == ""
    documents = [json.loads(event.removeprefix("data: ")) for event in events]
    return [document.get("TEXT", document) for document in documents]
