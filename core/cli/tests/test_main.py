"""The `naiad` command itself."""

from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import naiad
from naiad_cli.main import COMMANDS, main


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_without_a_command_all_are_listed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(words)

    message = capsys.readouterr().out
    assert exited.value.code == 0
    assert all(command.name in message and command.help in message for command in COMMANDS)


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_reported(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main([option])

    assert (exited.value.code, capsys.readouterr().out) == (0, f"naiad {naiad.__version__}\n")


def test_what_stdout_cannot_encode_is_escaped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "模型" / "1").mkdir(parents=True)
    written = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(written, encoding="iso-8859-1", write_through=True))

    status = main(["check", str(tmp_path)])

    assert status == 1
    assert written.getvalue().startswith(rb"\u6a21\u578b: 1 problem")


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_in_both_ways_of_asking(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = []
    for words in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit) as exited:
            main(words)
        recorded.append((exited.value.code, capsys.readouterr().out))

    assert recorded[0] == recorded[1]
    assert recorded[0][0] == 0
    assert recorded[0][1].startswith(f"usage: naiad {command}")


def test_an_unknown_command_is_answered_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["sevre"])

    assert exited.value.code == 2
    assert capsys.readouterr().err == "naiad: there is no command 'sevre'; did you mean 'serve'?\n"


def test_an_option_of_no_command_is_refused_under_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["plugins", "--jsn"])

    assert exited.value.code == 2
    assert capsys.readouterr().err == (
        "usage: naiad plugins [-h] [--json]\nnaiad plugins: unrecognized arguments: --jsn; did you mean '--json'?\n"
    )


@pytest.mark.parametrize(
    ("words", "message", "expected"),
    [
        (["serve"], "naiad serve: no model repository is given; write naiad serve DIR, or naiad serve model.py\n", 2),
        (["serve", "--model-repositry=x"], "naiad serve: unknown option --model-repositry. Did you mean", 2),
        (["serve", ".", "--exit-on-error", "maybe"], "'maybe' is not a value of --exit-on-error, nor a file or", 2),
        (["serve", ".", "--load-model=m"], "--load-model=m needs --model-control-mode=explicit: in the mode 'none'", 2),
        (["serve", ".", "--reload", "--load-model=m"], "--load-model=m needs --model-control-mode=explicit", 2),
        (
            ["serve", ".", "--model-control-mode=explicit", "--load-model=*", "--load-model=m"],
            "--load-model=* stands for every model; leave the other --load-model out",
            2,
        ),
        (["check", ".", "--backend-confg=x"], "naiad check: unknown option --backend-confg. Did you mean", 2),
        (["models", "--url", "http://[bad"], "--url http://[bad is not an HTTP address: Invalid IPv6 URL", 2),
        (["serve", ".", "--log-file=no/such/file"], "--log-file no/such/file cannot be opened", 2),
        (["serve", ".", "--api-keys=no/such/file"], "--api-keys: 'no/such/file' cannot be read", 2),
        (["check"], "no model repository is given; write naiad check DIR, or naiad check model.py", 2),
        (["check", "no/such/folder"], "no/such/folder' cannot be read: No such file or directory", 1),
    ],
)
def test_a_mistake_is_one_sentence_and_a_status(
    words: list[str], message: str, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(words)

    assert status == expected
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("source", ["command line", "variable", "options file"])
def test_check_takes_the_options_of_serve_wherever_they_stand(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    backends = tmp_path / "backends"
    write(backends / "shouting" / "model.py", "class TritonPythonModel:\n    def execute(self, requests): ...\n")
    write(tmp_path / "models" / "loud" / "config.pbtxt", 'backend: "shouting"')
    write(tmp_path / "models" / "loud" / "1" / "words.txt", "")
    words = ["check", str(tmp_path / "models"), "--http-port=9"]
    if source == "command line":
        words.append(f"--backend-directory={backends}")
    elif source == "variable":
        monkeypatch.setenv("NAIAD_BACKEND_DIRECTORY", str(backends))
    else:
        write(tmp_path / "naiad.toml", f'backend-directory = "{backends}"')
        words.append(f"--options={tmp_path / 'naiad.toml'}")

    status = main(words)

    assert (status, capsys.readouterr().out.splitlines()[0]) == (0, "loud: ok")


def test_check_warns_of_what_serve_would_warn_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NAIAD_HTP_PORT", "9")

    main(["check", str(tmp_path), "--host-policy=numa,node=1"])

    variable, option, *_ = capsys.readouterr().err.splitlines()
    assert variable.startswith("warning: the variable NAIAD_HTP_PORT")
    assert option.startswith("warning: --host-policy has no effect")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "1e300", "soon"])
def test_a_timeout_that_sockets_do_not_take_is_a_mistake(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["infer", "m", "--input=x=1", f"--timeout={text}"])

    assert ended.value.code == 2
    assert f"'{text}' is not a number of seconds above 0" in capsys.readouterr().err
