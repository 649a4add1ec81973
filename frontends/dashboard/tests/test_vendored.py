"""The vendored scripts are those that their packages have, with licences and hashes."""

import hashlib
import json
import re
from importlib import resources

import pytest

from naiad_dashboard.assets import _TYPES, assets

VENDOR = resources.files("naiad_dashboard").joinpath("static/vendor")
LISTED = json.loads(VENDOR.joinpath("vendored.json").read_text())


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_vendored_file_has_the_hash_that_is_listed_and_its_licence(name):
    entry = LISTED[name]

    assert hashlib.sha256(VENDOR.joinpath(name).read_bytes()).hexdigest() == entry["sha256"]
    assert VENDOR.joinpath(entry["text"]).read_text().strip()
    assert set(entry) == {"package", "version", "file", "licence", "text", "sha256"}


def test_every_vendored_file_is_listed():
    assert {path.removeprefix("vendor/") for path in assets() if path.startswith("vendor/")} == set(LISTED)


def test_our_scripts_and_styles_name_no_other_host():
    for path, (content, _, _) in assets().items():
        if not path.startswith("vendor/") and not path.endswith(".svg"):
            assert not re.search(rb"https?://", content), path


def test_every_import_of_a_script_is_served():
    for path, (content, media_type, _) in assets().items():
        if media_type == _TYPES[".js"] and not path.startswith("vendor/"):
            for name in re.findall(rb'from "\./([^"]+)"', content):
                assert name.decode() in assets(), (path, name)
