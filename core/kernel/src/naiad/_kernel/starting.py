"""How a server begins: its own plugins, the models that it starts with, and following the disk from then on."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad.errors import ModelNotReadyError, NotFoundError

if TYPE_CHECKING:
    from naiad._kernel.models import Models
    from naiad.options import Settings

_logger = logging.getLogger("naiad")


def with_own(plugins: Sequence[object]) -> list[object]:
    """The plugins and the kernel's own, which come through the same hooks."""
    from naiad import default_scheduler, default_warmup

    own = [plugin for plugin in (default_scheduler, default_warmup) if plugin not in plugins]
    return [*plugins, *own]


async def load_start_up_models(models: "Models", settings: "Settings") -> None:
    """Load what the options ask for. Raises ModelNotReadyError when one failed and `exit-on-error` is set."""
    names: Sequence[str] | None = None
    if settings["model-control-mode"] == "explicit":
        asked = tuple(settings["load-model"])
        names = None if asked == ("*",) else asked
    await models.load_all(names)
    failures = models.failures()
    if failures and settings["exit-on-error"]:
        reasons = "\n".join(f"- {reason}" for reason in failures)
        raise ModelNotReadyError(
            f"failed to load all models:\n{reasons}\nMend them, or start with --exit-on-error=false"
        )


async def follow_disk(models: "Models", every_seconds: float) -> None:
    """Load and unload what changes in the repositories, until it is cancelled."""
    while True:
        await asyncio.sleep(every_seconds)
        try:
            await models.follow_disk()
        except NotFoundError as error:
            _logger.error("%s; what is loaded stays loaded", error)
        except Exception:
            _logger.exception("looking at the model repositories failed; trying again")
