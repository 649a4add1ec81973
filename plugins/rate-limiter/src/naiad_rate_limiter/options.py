"""Options of the rate limiter: on or off, and explicit resource limits."""

from naiad.errors import UsageError
from naiad.options import Option, Settings
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import ResourceLimit


def _resource(text: str) -> str:
    """The text itself, when it is a limit. Raises ValueError."""
    ResourceLimit.read(text)
    return text


RATE_LIMIT_OPTIONS = (
    Option(
        "rate-limit",
        "off",
        "off: an instance starts when it has work; execution_count: when it also has the resources that it names",
        choices=("off", "execution_count"),
    ),
    Option(
        "rate-limit-resource",
        (),
        "so many units of a resource, on each device or the named one; without it, the most that an instance needs",
        _resource,
        "NAME:COUNT[:DEVICE]",
        repeatable=True,
    ),
)


def rate_limiter_of(settings: Settings) -> RateLimiter | None:
    """The rate limiter that the options ask for, None for none. Raises UsageError."""
    if settings["rate-limit"] == "off":
        return None
    try:
        return RateLimiter([ResourceLimit.read(text) for text in settings["rate-limit-resource"]])
    except ValueError as error:
        raise UsageError(f"--rate-limit-resource {error}") from error
