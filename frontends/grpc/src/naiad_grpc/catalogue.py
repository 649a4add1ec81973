"""Table of all RPCs that are served, independent of the transport."""

import asyncio
from typing import TYPE_CHECKING

from naiad_grpc.access_lines import lines_of
from naiad_grpc.inference import make_inference
from naiad_grpc.keyed_calls import keyed
from naiad_grpc.messages import SERVICE
from naiad_grpc.service.health import HealthRpcs
from naiad_grpc.service.message_limits import limited
from naiad_grpc.service.metadata import MetadataRpcs
from naiad_grpc.service.operations import Operation, StreamOperation, UnaryOperation
from naiad_grpc.service.reflection import ReflectionRpcs
from naiad_grpc.service.repository import RepositoryRpcs
from naiad_grpc.service.settings import SettingsRpcs
from naiad_grpc.service.shared_memory import SharedMemoryRpcs
from naiad_grpc.service.statistics import StatisticsRpcs
from naiad_kit.frontends.api_keys import api_keys_of

if TYPE_CHECKING:
    from naiad.server import ServerApi


def operations(server: "ServerApi", stopping: asyncio.Event) -> list[Operation]:
    """Every RPC of the inference service, and those of health checking and reflection.

    `stopping` is set when the frontend begins to stop. Raises InvalidArgumentError for an invalid option.
    """
    inference = make_inference(server)
    others: list[Operation] = [
        *HealthRpcs(server, stopping).operations(),
        *MetadataRpcs(server).operations(),
        *StatisticsRpcs(server).operations(),
        *RepositoryRpcs(server).operations(),
        *SharedMemoryRpcs(server).operations(),
        *SettingsRpcs(server).operations(),
        *ReflectionRpcs().operations(),
    ]
    keys = api_keys_of(server)
    if keys is not None:
        others = [keyed(each, keys) for each in others]
    others = [limited(each) for each in others]
    lines = lines_of(server)
    infer, stream = f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ModelStreamInfer"
    return [
        UnaryOperation(infer, "inference", inference.infer, inference.begin, inference.decode, inference.memory),
        StreamOperation(stream, "inference", inference.stream, inference.open_stream, inference.memory),
        *(others if lines is None else map(lines.logged, others)),
    ]
