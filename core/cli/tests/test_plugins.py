"""How `naiad plugins` shows the framework of a backend."""

import pytest

from naiad_cli.plugins import describe_framework


def test_the_framework_of_a_backend_is_shown_with_its_version_or_with_what_to_install() -> None:
    shown = [
        describe_framework((), ""),
        describe_framework(("no-such-framework", "pytest"), "naiad-abacus"),
        describe_framework(("no-such-framework",), ""),
        describe_framework(("no-such-framework", "no-other"), "naiad-torch[cpu]"),
    ]

    assert shown == [
        "",
        f" (pytest {pytest.__version__})",
        " (no-such-framework is not installed)",
        " (no-such-framework is not installed: pip install 'naiad-torch[cpu]')",
    ]
