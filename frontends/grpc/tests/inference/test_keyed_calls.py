"""Calls of a server with API keys: what of their metadata models see."""

from hashlib import sha256
from types import SimpleNamespace

import pytest

from naiad_grpc.keyed_calls import KeyedIntake
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.forwarding import HeaderForwarding


@pytest.mark.parametrize(
    ("metadata", "forwarded"),
    [
        ([("x-api-key", "key"), ("authorization", "Bearer own")], {"authorization": "Bearer own"}),
        ([("x-api-key", "key"), ("authorization", "Bearer key")], {}),
        ([("authorization", "Bearer key"), ("x-user", "ada"), ("x-bin", b"")], {"x-user": "ada"}),
    ],
)
def test_the_api_key_of_the_caller_is_not_forwarded_to_models(make_server, tmp_path, metadata, forwarded):
    file = tmp_path / "keys.toml"
    file.write_text(f'[[key]]\nname = "app"\nsha256 = "{sha256(b"key").hexdigest()}"\n')
    keys = ApiKeys(str(file))
    intake = KeyedIntake(make_server(), HeaderForwarding(".*", "--option"), CodecThreads("test"), keys)
    context = SimpleNamespace(time_remaining=lambda: None, invocation_metadata=lambda: metadata)

    caller = intake.caller(context, "ModelInfer")

    assert caller.forwarded == forwarded
    assert caller.credential == sha256(b"key").digest()
