"""Random frames, some broken, with a fixed seed: each connection goes on or ends in good order; nothing is raised.

`python -m bench.torture.http2_mutations` does the same for ten minutes.
"""

from random import Random

import pytest

from naiad_grpc.http2.frames import ErrorCode

from .conftest import BLOCK, GOAWAY, PREFACE, RST, SETTINGS, Peer, frame


def random_bytes(random):
    """A few frames of any kind, of which one in five has a byte changed."""
    parts = []
    for _ in range(random.randrange(1, 12)):
        content = random.choice((b"", BLOCK, bytes(4), bytes(8), random.randbytes(random.randrange(60))))
        built = bytearray(frame(random.randrange(12), random.randrange(256), random.choice((0, 1, 3, 2, 9)), content))
        if random.random() < 0.2:
            built[random.randrange(len(built))] = random.randrange(256)
        parts.append(bytes(built))
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(20))
def test_random_frames_end_in_an_answer_or_a_goaway(seed):
    random = Random(seed)
    for _ in range(100):
        peer = Peer()
        peer.send(PREFACE + frame(SETTINGS, 0, 0))
        sent = random_bytes(random)
        cut = random.randrange(len(sent))

        peer.send(sent[:cut])
        peer.send(sent[cut:])
        peer.connection.tick(1.0)
        peer.collect()

        codes = [code for kind, _, code in peer.errors() if kind == GOAWAY]
        assert len(codes) <= peer.connection.ended  # a client that says GOAWAY needs no answer
        assert {code for _, _, code in peer.errors()} <= set(ErrorCode)
        assert not (peer.connection.ended and peer.connection.streams)
        assert {kind for kind, *_ in peer.errors()} <= {RST, GOAWAY}
