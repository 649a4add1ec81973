"""Poll mode: models follow what is on disk, under load, and whatever happens to the disk."""

from pathlib import Path

from . import models
from .asking import ROW
from .conftest import Start
from .generations import assert_each_saw_them_in_order, source, under_load
from .running import until

POLL = ("--model-control-mode=poll", "--repository-poll-secs=0.05")


def test_a_file_that_is_written_slowly_is_served_when_it_is_whole(start: Start, repository: Path) -> None:
    models.write(repository, "renewed", source(0))
    running = start(*POLL)
    content = source(1)

    with under_load(running, "renewed", ROW) as load:
        with (repository / "renewed" / "1" / "model.py").open("w") as file:
            file.write(content[:-30])
            file.flush()
            until(lambda: "the last reload failed" in running.entries("renewed")[0].get("reason", ""))
            load.wait_for(5)
            file.write(content[-30:])
        until(lambda: load.answers[0][-1].document["outputs"][0]["data"] == [1])
        load.wait_for(5)

    assert_each_saw_them_in_order(load, 1)
    assert "reason" not in running.entries("renewed")[0]
    running.stop()
