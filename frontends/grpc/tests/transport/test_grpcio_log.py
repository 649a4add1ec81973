"""The log of grpcio's Python: a caller that leaves while it is answered is no error of the server."""

import logging

import pytest

from .conftest import Calls, Served


@pytest.mark.parametrize(
    ("message", "is_logged"),
    [("ExecuteBatchError raised in core by servicer method [/t/echo]", False), ("Unexpected [KeyError] raised", True)],
)
def test_a_caller_that_times_out_while_it_is_answered_is_not_logged_as_an_error(run, caplog, message, is_logged):
    async def main():
        async with Served(Calls()):
            logging.getLogger("grpc._cython.cygrpc").error(message)

    run(main())

    assert (message in caplog.messages) is is_logged
