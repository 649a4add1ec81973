"""docs/rate_limiter.md names every option and every metric of the rate limiter, and no other."""

import re
from pathlib import Path

from naiad_rate_limiter.gates import ResourceGates
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.options import RATE_LIMIT_OPTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "rate_limiter.md").read_text(encoding="utf-8")


def test_the_page_names_every_option_and_no_other() -> None:
    named = set(re.findall(r"--(rate-limit[a-z-]*)", PAGE))

    assert named == {option.name for option in RATE_LIMIT_OPTIONS}


def test_the_page_names_every_metric_with_its_type_and_no_other() -> None:
    rows = dict(re.findall(r"^\| `(naiad_[a-z_]+)` \| (\w+) \|", PAGE, re.MULTILINE))

    assert rows == {family.name: family.kind for family in ResourceGates(RateLimiter()).metrics()}
