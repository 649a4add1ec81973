"""Frames to bytes and back, in any pieces, with an end at every byte."""

import time

import pytest

from naiad_process_workers.frames import Frame, FrameReader, FrameWriter, LinkBrokenError

CARRIERS = (12, 13)
FRAMES = [Frame(10, 1, b"first"), Frame(11, 2**63, b""), Frame(12, 3, b"x" * 5000, (7, 8)), Frame(13, 4, b"last", (9,))]


def written(frames: list[Frame]) -> tuple[bytes, list[int]]:
    writer = FrameWriter()
    for frame in frames:
        writer.put(*frame)
    buffers, descriptors = writer.take()
    return b"".join(buffers), descriptors


def test_all_frames_of_a_round_go_with_one_write() -> None:
    content, descriptors = written(FRAMES)

    assert FrameReader(CARRIERS).feed(content, descriptors) == FRAMES
    assert descriptors == [7, 8, 9]


@pytest.mark.parametrize("size", [1, 7, 16, 4000])
def test_frames_may_come_in_pieces(size: int) -> None:
    content, descriptors = written(FRAMES)
    reader = FrameReader(CARRIERS)

    frames = []
    for start in range(0, len(content), size):
        frames += reader.feed(content[start : start + size], descriptors if not start else ())

    assert frames == FRAMES


def test_whatever_part_is_written_the_rest_follows() -> None:
    content, _ = written(FRAMES)
    for count in range(1, len(content), 97):
        writer = FrameWriter()
        for frame in FRAMES:
            writer.put(*frame)
        read = b""
        while writer.waiting:
            buffers, _ = writer.take()
            part = b"".join(buffers)[:count]
            writer.sent(len(part))
            read += part
        assert read == content


def test_a_frame_whose_end_is_missing_does_not_come() -> None:
    content, descriptors = written(FRAMES)
    boundaries = [0]
    for frame in FRAMES:
        boundaries.append(boundaries[-1] + 16 + len(frame.body))

    for stop in range(0, len(content), 13):
        reader = FrameReader(CARRIERS)
        frames = reader.feed(content[:stop], descriptors)
        assert frames == FRAMES[: sum(boundary <= stop for boundary in boundaries[1:])]


@pytest.mark.parametrize("content", [b"\xff" * 16, b"\0\0\0\0\x0a\0\x01\0" + b"\0" * 8])
def test_what_is_no_frame_breaks_the_link(content: bytes) -> None:
    with pytest.raises(LinkBrokenError):
        FrameReader().feed(content)


def test_a_kind_without_descriptors_cannot_have_any() -> None:
    content, descriptors = written([Frame(11, 1, b"", (7,))])

    with pytest.raises(LinkBrokenError, match="kind 11"):
        FrameReader(CARRIERS).feed(content, descriptors)


def test_many_descriptors_go_in_several_writes() -> None:
    writer = FrameWriter()
    for number in range(100):
        writer.put(10, number, b"", (number,))

    sent = []
    while writer.waiting:
        buffers, descriptors = writer.take()
        sent.append(len(descriptors))
        writer.sent(sum(map(len, buffers)))

    assert sent == [64, 36]


def test_the_bytes_of_a_long_frame_are_joined_once() -> None:
    reader, body = FrameReader(), b"x" * (64 << 20)
    content, _ = written([Frame(10, 1, body)])

    view, before = memoryview(content), time.process_time()
    frames = [
        frame
        for start in range(0, len(content), 1 << 16)
        for frame in reader.feed(bytes(view[start : start + (1 << 16)]))
    ]

    assert frames == [Frame(10, 1, body)]
    assert time.process_time() - before < 10  # joining them at each piece takes half a minute
