"""The page about shared memory says what the code does."""

import re
from pathlib import Path

from naiad import errors
from naiad_kit.shared_memory import SharedMemoryApi
from naiad_shared_memory.cuda_driver import HANDLE_SIZE
from naiad_shared_memory.options import OPTIONS
from naiad_shared_memory.segments import RESERVED_PREFIX

PAGE = (Path(__file__).parents[3] / "docs" / "shared_memory.md").read_text()


def test_the_page_has_the_option_and_its_default() -> None:
    (option,) = (each for each in OPTIONS if each.name == "allow-client-shm")

    assert f"`--{option.name}` is `{str(option.default).lower()}`" in PAGE


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert f"the {HANDLE_SIZE} bytes that `cudaIpcGetMemHandle` gives" in PAGE
    assert f"`{RESERVED_PREFIX}`" in PAGE


def test_the_page_names_what_can_be_called() -> None:
    calls = {name for name in vars(SharedMemoryApi) if not name.startswith("_")} - {"name"}

    assert all(f"`{name}`" in PAGE or f"`{name}(" in PAGE for name in calls)


def test_the_page_names_the_errors_that_are_raised() -> None:
    code = "".join(path.read_text() for path in (Path(__file__).parents[1] / "src/naiad_shared_memory").glob("*.py"))
    raised = set(re.findall(r"(?:raise|return) (\w+Error)\(", code))

    message = set(re.findall(r"\| `(\w+Error)` \|", PAGE))

    assert message == raised
    assert all(hasattr(errors, name) for name in message)
