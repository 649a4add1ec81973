"""Asks every example model something with Triton's own client, and prints the answers. Start `make serve` first."""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

import numpy as np
import tritonclient.http as client
from tritonclient.http import aio

from drawing import LABELS, draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="localhost:8000", help="host and port of the server (default: %(default)s)")
    url = parser.parse_args().url
    try:
        urlopen(f"http://{url}/v2/health/live", timeout=10).close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        reason = getattr(reason, "strerror", None) or reason
        parser.exit(
            1, f"no server answers at {url}: {reason}; start one with 'make serve', or name another with --url\n"
        )
    with client.InferenceServerClient(url) as server:
        for ask in (shapes, word_ids, celsius, nearest_city, journey, weather_card, add_sub, till, accumulator):
            announce(ask)
            ask(server)
        for ask in (life, slug, daylight, outline):
            announce(ask)
            if server.is_model_ready(ask.__name__):
                ask(server)
            else:
                print("  is not served here: examples/build.py says what it needs")
    announce(text_embedding)
    asyncio.run(text_embedding(url))
    announce(typewriter)
    typewriter(url)


def announce(ask: Callable[..., object]) -> None:
    print(f"\n{ask.__name__}: {ask.__doc__}")


def shapes(server: client.InferenceServerClient) -> None:
    """Three pictures in one request; the server names the classes by the model's label file."""
    chance = np.random.default_rng(5)
    drawn = [LABELS[chance.integers(len(LABELS))] for _ in range(3)]
    pictures = np.stack([draw(label, chance) for label in drawn])
    best_two = client.InferRequestedOutput("probabilities", class_count=2)
    answer = server.infer("shapes", [tensor("image", pictures, "UINT8")], outputs=[best_two])
    for label, classes in zip(drawn, answer.as_numpy("probabilities"), strict=True):
        seen = [each.decode().split(":") for each in classes]
        message = ", ".join(f"{name} {float(probability):.0%}" for probability, _, name in seen)
        print(f"  drawn: {label:14} seen: {message}")


def word_ids(server: client.InferenceServerClient) -> None:
    """Strings of any number in, fewer strings and their numbers out."""
    words = ["The", "cat", "SLEEPS", "while", "a", "bird", "sings"]
    answer = server.infer("word_ids", [strings("words", [words])])
    kept = [word.decode() for word in answer.as_numpy("kept")[0]]
    print(f"  {' '.join(words)} -> {dict(zip(kept, answer.as_numpy('ids')[0].tolist(), strict=True))}")


def celsius(server: client.InferenceServerClient) -> None:
    """A function with annotations is the whole model."""
    degrees = np.array([[-40], [0], [37], [100]], dtype=np.float32)
    answer = server.infer("celsius", [tensor("celsius", degrees, "FP32")])
    for before, after in zip(degrees[:, 0], answer.as_numpy("fahrenheit")[:, 0], strict=True):
        print(f"  {before:g} °C is {after:g} °F")


def nearest_city(server: client.InferenceServerClient) -> None:
    """A class that loaded its table of cities once."""
    positions = {"Stonehenge": (51.18, -1.83), "Mount Fuji": (35.36, 138.73), "the South Pole": (-90, 0)}
    array = np.array(list(positions.values()), dtype=np.float32)
    answer = server.infer("nearest_city", [tensor("position", array, "FP32")])
    cities, distances = answer.as_numpy("city")[:, 0], answer.as_numpy("kilometres")[:, 0]
    for name, city, distance in zip(positions, cities, distances, strict=True):
        print(f"  {name}: {city.decode()}, {distance:,.0f} km")


def journey(server: client.InferenceServerClient) -> None:
    """A model that asks another one, twice at once."""
    positions = np.array([(51.18, -1.83), (35.36, 138.73)], dtype=np.float32)
    answer = server.infer("journey", [tensor("positions", positions, "FP32")])
    print(f"  from {answer.as_numpy('start')[0].decode()} to {answer.as_numpy('end')[0].decode()}")


def weather_card(server: client.InferenceServerClient) -> None:
    """An ensemble of three models: what is not asked for is not computed."""
    positions = np.array([(51.18, -1.83), (35.36, 138.73)], dtype=np.float32)
    degrees = np.array([[14], [-3]], dtype=np.float32)
    requested = [client.InferRequestedOutput(name) for name in ("CITY", "FAHRENHEIT")]
    inputs = [tensor("POSITION", positions, "FP32"), tensor("CELSIUS", degrees, "FP32")]
    answer = server.infer("weather_card", inputs, outputs=requested)
    for city, warmth in zip(answer.as_numpy("CITY")[:, 0], answer.as_numpy("FAHRENHEIT")[:, 0], strict=True):
        print(f"  near {city.decode()} it is {warmth:.1f} °F")


def add_sub(server: client.InferenceServerClient) -> None:
    """A model.py written for Triton's Python backend."""
    a, b = np.array([[1, 2, 3, 4]], dtype=np.float32), np.array([[10, 20, 30, 40]], dtype=np.float32)
    answer = server.infer("add_sub", [tensor("INPUT0", a, "FP32"), tensor("INPUT1", b, "FP32")])
    print(f"  {a[0]} + {b[0]} = {answer.as_numpy('OUTPUT0')[0]}")
    print(f"  {a[0]} - {b[0]} = {answer.as_numpy('OUTPUT1')[0]}")


def till(server: client.InferenceServerClient) -> None:
    """Sequences: two customers at once, and the server keeps the bill of each."""
    bought = {"Ann": [1.5, 2.0, 0.5], "Bob": [10.0, 20.0]}
    totals: dict[str, list[float]] = {name: [] for name in bought}
    for turn in range(3):
        for name, prices in bought.items():
            if turn < len(prices):
                price = tensor("price", np.array([[prices[turn]]], dtype=np.float32), "FP32")
                flags = {"sequence_start": turn == 0, "sequence_end": turn == len(prices) - 1}
                answer = server.infer("till", [price], sequence_id=name, **flags)
                totals[name].append(float(answer.as_numpy("total")[0, 0]))
    for name, sums in totals.items():
        print(f"  {name}: {' '.join(f'{total:.2f}' for total in sums)}")


def accumulator(server: client.InferenceServerClient) -> None:
    """The same as an ONNX model, which the server tells where a sequence starts."""
    for number in (5, 7, 1):
        model_input = tensor("INPUT", np.array([[number]], dtype=np.int32), "INT32")
        answer = server.infer(
            "accumulator", [model_input], sequence_id=1, sequence_start=number == 5, sequence_end=number == 1
        )
        print(f"  {number} makes {answer.as_numpy('OUTPUT')[0, 0]}")


def life(server: client.InferenceServerClient) -> None:
    """A program that PyTorch exported: Conway's Game of Life, whose glider has moved after four steps."""
    board = np.zeros((1, 5, 8), dtype=np.uint8)
    board[0, [0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    boards = [board]
    for _ in range(4):
        answer = server.infer("life", [tensor("board", boards[-1], "UINT8")])
        boards.append(answer.as_numpy("OUTPUT__0"))
    for rows in zip(*(each[0] for each in boards), strict=True):
        print("  " + "  ".join("".join(".#"[cell] for cell in row) for row in rows))


def slug(server: client.InferenceServerClient) -> None:
    """A SavedModel of TensorFlow, which computes on strings."""
    titles = [["Crème brûlée, in 10 minutes!"], ["  What is   DLPack?  "]]
    answer = server.infer("slug", [strings("title", titles)])
    for (title,), slug, words in zip(titles, answer.as_numpy("slug")[:, 0], answer.as_numpy("words"), strict=True):
        print(f"  '{title}' -> {slug.decode()} ({words[0]} words)")


def daylight(server: client.InferenceServerClient) -> None:
    """A model of OpenVINO: the hours between sunrise and sunset."""
    latitude_of = {"Quito": 0.2, "Rome": 41.9, "Tromsø": 69.6}
    latitudes = np.array([[latitude] for latitude in latitude_of.values()], dtype=np.float32)
    hours = {}
    for date, day in (("in March", 81), ("in June", 172), ("in December", 355)):
        days = np.full_like(latitudes, day)
        answer = server.infer("daylight", [tensor("day", days, "FP32"), tensor("latitude", latitudes, "FP32")])
        hours[date] = answer.as_numpy("hours")[:, 0]
    for index, name in enumerate(latitude_of):
        print(f"  {name}: " + ", ".join(f"{each[index]:.1f} h {date}" for date, each in hours.items()))


def outline(server: client.InferenceServerClient) -> None:
    """A net of Caffe2: what has a slope on a picture of a square is its outline."""
    picture = np.zeros((1, 7, 12, 1), dtype=np.float32)
    picture[0, 2:5, 2:10] = 1
    answer = server.infer("outline", [tensor("picture", picture, "FP32")])
    for row in answer.as_numpy("outline")[0]:
        print("  " + "".join(".#"[int(slope > 0)] for slope in row))


async def text_embedding(url: str) -> None:
    """Many single requests at once, which the server batches; near texts get near vectors."""
    texts = ["a red apple", "a red apple pie", "green apples", "the night train to Vienna"] * 16
    async with aio.InferenceServerClient(url) as server:
        pending = [server.infer("text_embedding", [strings("text", [[text]])]) for text in texts]
        answers = await asyncio.gather(*pending)
    vectors = [answer.as_numpy("embedding")[0] for answer in answers]
    for text, vector in zip(texts[:4], vectors, strict=False):
        print(f"  '{texts[0]}' and '{text}': similarity {vectors[0] @ vector:.2f}")
    together = Counter(int(answer.as_numpy("ran_together")[0, 0]) for answer in answers)
    sizes = ", ".join(f"{count} in batches of {size}" for size, count in sorted(together.items()))
    print(f"  {len(texts)} requests ran: {sizes}")


def typewriter(url: str) -> None:
    """One request with many responses, each as soon as it is there: the generate extension, in plain HTTP."""
    words = [event["word"] for event in events(url, "typewriter", {"text": "every word is a response of its own"})]
    print(f"  {len(words)} responses: {' '.join(words)}")


def events(url: str, model: str, value: dict[str, object]) -> Iterator[dict[str, Any]]:
    with urlopen(f"http://{url}/v2/models/{model}/generate_stream", json.dumps(value).encode()) as lines:
        for line in lines:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def tensor(name: str, array: np.ndarray, datatype: str) -> client.InferInput:
    tensor = client.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def strings(name: str, rows: list[list[str]]) -> client.InferInput:
    return tensor(name, np.array(rows, dtype=object), "BYTES")


if __name__ == "__main__":
    main()
