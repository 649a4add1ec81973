"""Poll mode: models follow what is on disk, under load, and whatever happens to the disk."""

from pathlib import Path

from . import models
from .asking import ROW
from .conftest import Start
from .generations import asked, assert_each_saw_them_in_order, replace, source
from .running import until

POLL = ("--model-control-mode=poll", "--repository-poll-secs=0.05")


def test_a_model_that_changes_on_disk_under_load_fails_no_request(start: Start, repository: Path) -> None:
    models.write(repository, "renewed", source(0))
    running = start(*POLL)

    with asked(running, "renewed", ROW) as load:
        for number in range(1, 6):
            replace(repository, "renewed", source(number))
            until(lambda number=number: load.answers[0][-1].document["outputs"][0]["data"] == [number])
        load.wait_for(5)

    assert_each_saw_them_in_order(load, 5)
    running.stop()


def test_a_file_that_is_written_slowly_is_served_when_it_is_whole(start: Start, repository: Path) -> None:
    models.write(repository, "renewed", source(0))
    running = start(*POLL)
    content = source(1)

    with asked(running, "renewed", ROW) as load:
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


def test_models_come_and_go_with_their_folders(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*POLL)

    models.write(tmp_path / "elsewhere", "newcomer", source(3))
    (tmp_path / "elsewhere" / "newcomer").rename(repository / "newcomer")
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status == 200)
    (repository / "newcomer").rename(tmp_path / "elsewhere" / "newcomer")
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status != 200)
    until(lambda: running.entries("newcomer") == [])

    assert running.infer("echo", 1).status == 200
    assert running.ready()
    running.stop()


def test_a_repository_that_vanishes_takes_no_model_with_it(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*POLL)
    assert running.infer("echo", 1).status == 200

    repository.rename(tmp_path / "moved")
    until(lambda: "cannot be read" in running.log)
    without = running.infer("echo", 1)
    (tmp_path / "moved").rename(repository)
    models.write(repository, "newcomer", source(3))
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status == 200)

    assert without.status == 200
    running.stop()
