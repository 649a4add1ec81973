"""`naiad completion`: prints the completion script of a shell, with the commands and options that are installed."""

import argparse
import importlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from naiad.errors import NaiadError
from naiad_cli.extra_commands import add_extra_command, extra_commands
from naiad_cli.parser import Parser, Subparsers

SHELLS = ("bash", "zsh", "fish")

_FILES = "dir file path config"
"""Words in the name of an argument that takes a file or a folder."""


@dataclass(frozen=True, slots=True)
class CompletedOption:
    """An option: its name with dashes, its first sentence, its values where they are few, and what it takes."""

    name: str
    help: str
    values: Sequence[str] = ()
    has_value: bool = True
    takes_file: bool = False


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A command: its options, and the words that may follow it where these are few."""

    help: str
    options: Sequence[CompletedOption] = ()
    words: Sequence[str] = ()
    subcommands: Mapping[str, "CompletedCommand"] = field(default_factory=dict)


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `completion`."""
    parser = subparsers.add_parser(
        "completion",
        description="The completion script of a shell, for the plugins that are installed now: print it again after "
        "installing others.",
        epilog='bash: eval "$(naiad completion bash)" in ~/.bashrc. zsh: naiad completion zsh > a folder of fpath, as '
        "_naiad. fish: naiad completion fish > ~/.config/fish/completions/naiad.fish",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from naiad_cli.main import COMMANDS  # it imports this module for this command

    parsers = Parser("naiad").add_subparsers(parser_class=Parser)
    helps = {command.name: command.help for command in COMMANDS}
    for command in COMMANDS:
        importlib.import_module(command.module).add_parser(parsers)
    extra = extra_commands(helps)
    for name, command_of_plugin in extra.items():
        try:
            add_extra_command(name, extra, parsers)
        except NaiadError:  # a broken one is reported when it is called
            continue
        helps[name] = command_of_plugin.help
    commands = {name: _described(parser, helps.get(name, "")) for name, parser in parsers.choices.items()}
    helps["help"] = "help of a command"
    commands["help"] = CompletedCommand(helps["help"], words=tuple(commands))
    scripts = {"bash": bash, "zsh": zsh, "fish": fish}
    print("\n".join(scripts[arguments.shell](commands)))
    return 0


def bash(commands: Mapping[str, CompletedCommand]) -> Iterator[str]:
    """The script for bash."""
    yield "_naiad() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '    local words="" values="" files="-f"'
    yield '    [[ $word == "=" ]] && word=""'
    yield '    [[ $before == "=" ]] && before="${COMP_WORDS[COMP_CWORD-2]}"'
    yield "    if [[ $COMP_CWORD -eq 1 ]]; then"
    yield f'        COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word")); return'
    yield "    fi"
    yield '    case "${COMP_WORDS[1]}" in'
    for name, command in commands.items():
        yield f"    {name})"
        yield f'        words="{" ".join([*(option.name for option in command.options), *command.words])}"'
        if command.words:
            yield '        [[ $before == -* ]] || files=""'
        with_values = [option for option in _every(command) if option.values]
        if with_values:
            yield '        case "$before" in'
            for option in with_values:
                yield f'        {option.name}) values="{" ".join(option.values)}" ;;'
            yield "        esac"
        if command.subcommands:
            yield '        case "${COMP_WORDS[2]}" in'
            for inner, below in command.subcommands.items():
                names = " ".join(option.name for option in below.options)
                yield f'        {inner}) [[ $COMP_CWORD -gt 2 ]] && words="{names}" ;;'
            yield "        esac"
        yield "        ;;"
    yield "    esac"
    yield '    if [[ -n $values ]]; then COMPREPLY=($(compgen -W "$values" -- "$word")); return; fi'
    yield '    COMPREPLY=($(compgen -W "$words" $files -- "$word"))'
    yield "}"
    yield "complete -o filenames -F _naiad naiad"


def zsh(commands: Mapping[str, CompletedCommand]) -> Iterator[str]:
    """The script for zsh, a file `_naiad` of its `fpath`."""
    yield "#compdef naiad"
    yield "_naiad() {"
    yield "    local -a commands"
    yield "    commands=("
    for name, command in commands.items():
        yield f"        {shlex.quote(f'{name}:{_plain(command.help)}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then _describe command commands; return; fi"
    yield "    local command=$words[2]"
    yield "    shift words; (( CURRENT-- ))"
    yield "    case $command in"
    for name, command in commands.items():
        yield f"    {name})"
        yield "        _arguments \\"
        for option in _every(command):
            yield f"            {shlex.quote(_zsh_argument(option))} \\"
        words = [*command.words, *command.subcommands]
        yield f"            {shlex.quote('*:word:(' + ' '.join(words) + ')' if words else '*:file:_files')}"
        yield "        ;;"
    yield "    esac"
    yield "}"
    yield 'if [[ $funcstack[1] == _naiad ]]; then _naiad "$@"; else compdef _naiad naiad; fi'


def fish(commands: Mapping[str, CompletedCommand]) -> Iterator[str]:
    """The script for fish."""
    for name, command in commands.items():
        yield f"complete -c naiad -n __fish_use_subcommand -f -a {name} -d {shlex.quote(command.help)}"
        inside = f"-n '__fish_seen_subcommand_from {name}'"
        words = [*command.words, *command.subcommands]
        if words:
            yield f"complete -c naiad {inside} -f -a '{' '.join(words)}'"
        for option in _every(command):
            values = f" -x -a '{' '.join(option.values)}'" if option.values else ""
            needs = values or (" -r" if option.has_value else "")
            described = shlex.quote(option.help.replace("'", ""))
            yield f"complete -c naiad {inside} -l {option.name.removeprefix('--')}{needs} -d {described}"


def _described(parser: Parser, text: str) -> CompletedCommand:
    options, words = [], []
    for action in parser.option_actions():
        if action.help == argparse.SUPPRESS:
            continue
        names = [name for name in action.option_strings if name.startswith("--")]
        values = tuple(map(str, action.choices or ())) or (("true", "false") if action.metavar == "BOOL" else ())
        takes_file = any(word in str(action.metavar).lower() for word in _FILES.split())
        help_text = (action.help or "").replace("%%", "%").partition(" (default")[0]
        options += [
            CompletedOption(name, help_text, values, action.nargs not in (0, "?"), takes_file) for name in names
        ]
    subcommands = {name: _described(below, "") for name, below in parser.commands().items()}
    if parser.prog.endswith(" completion"):
        words = list(SHELLS)
    return CompletedCommand(text, tuple(options), (*words, *subcommands), subcommands)


def _every(command: CompletedCommand) -> Iterator[CompletedOption]:
    """The options of a command, and of the commands within it, each name once."""
    options = {option.name: option for option in command.options}
    for below in command.subcommands.values():
        options |= {option.name: option for option in _every(below)}
    yield from options.values()


def _zsh_argument(option: CompletedOption) -> str:
    described = f"*{option.name}[{_plain(option.help)}]"
    if not option.has_value:
        return described
    values = f"({' '.join(option.values)})" if option.values else "_files" if option.takes_file else " "
    return described.replace("[", "=[", 1) + f":value:{values}"


def _plain(text: str) -> str:
    """The text without what zsh reads as syntax."""
    return text.translate(str.maketrans("[]:'`\\", "()  ' ")).replace("'", "")
