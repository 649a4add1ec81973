"""Request router of groups: sequences by their session, the rest to the less loaded of two replicas."""

import random

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from naiad_ray.sequences import choose


class SequenceRouter(RequestRouter):  # type: ignore[misc]
    """Sends the requests of one session to one replica. Runs in the processes of front desks."""

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """The candidates for a request, which waits while they take no more."""
        if not candidate_replicas:
            return []
        session = pending_request.metadata.session_id if pending_request is not None else ""
        if not session:
            return [random.sample(candidate_replicas, min(2, len(candidate_replicas)))]
        by_name = {each.replica_id.unique_id: each for each in candidate_replicas}
        return [[by_name[choose(session, list(by_name))]]]
