"""Locations of sequences: the session that brings their requests to one replica, and the state of that replica."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from naiad_ray.request_fields import SequenceMark

MOST_SEQUENCES = 200_000
"""The sequences that a front desk remembers; those that it forgets first go on by hashing alone."""

_SEPARATOR = "|"


def session_of(key: str, owner: str = "") -> str:
    """The session of a sequence: its key, and the replica that has its state if that is known."""
    return f"{owner}{_SEPARATOR}{key}"


def choose(session: str, replicas: Sequence[str]) -> str:
    """The replica of a session: its owner if that is among the replicas, else by rendezvous hashing of the key.

    A replica that comes or goes moves only the keys that it gets or had. Thaler and Ravishankar, "Using name-based
    mappings to increase hit rates", 1998.
    """
    owner, _, key = session.partition(_SEPARATOR)
    if owner in replicas:
        return owner
    return max(replicas, key=lambda name: (blake2b(f"{name}{_SEPARATOR}{key}".encode(), digest_size=8).digest(), name))


class SequenceOwners:
    """The replicas that have the sequences which one front desk has forwarded.

    So a sequence stays where it is when replicas are added, and its end is noticed when its replica ends.
    """

    def __init__(self, most: int = MOST_SEQUENCES) -> None:
        self._most = most
        self._owners: OrderedDict[tuple[str, str], str] = OrderedDict()

    def session(self, model: str, mark: SequenceMark) -> str:
        """The session of a request: to the replica that has its sequence, unless the request starts the sequence."""
        return session_of(f"{model}/{mark.id}", "" if mark.start else self._owners.get((model, mark.id), ""))

    def settle(self, model: str, mark: SequenceMark, replica: str, group: str) -> str:
        """A replica has answered a request: remember it. Returns "", or why the sequence has ended."""
        key = (model, mark.id)
        owner = self._owners.get(key, "")
        if owner and owner != replica and not mark.start:
            return self.drop(model, mark, group)
        if mark.end:
            self._owners.pop(key, None)
        else:
            self._owners[key] = replica
            self._owners.move_to_end(key)
            if len(self._owners) > self._most:
                self._owners.popitem(last=False)
        return ""

    def drop(self, model: str, mark: SequenceMark, group: str) -> str:
        """The replica of a sequence has ended: forget it. Returns why the sequence has ended."""
        owner = self._owners.pop((model, mark.id), "")
        replica = f"replica {owner}" if owner else "the replica"
        return (
            f"sequence {mark.id} of model '{model}' has ended, because {replica} of group '{group}', which had its "
            "state, has ended; start the sequence again"
        )
