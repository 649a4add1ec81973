"""Start-up of a server: loads its first models, and polls the repositories from then on."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from naiad._lifecycle.models import Models
from naiad.errors import ModelNotReadyError, NotFoundError
from naiad.options import Settings

_logger = logging.getLogger("naiad")


async def load_startup_models(models: Models, settings: Settings) -> None:
    """Load the models that the options name; with `exit-on-error`, raises NaiadError when one or a repository fails."""
    names = tuple(settings["load-model"]) if settings["model-control-mode"] == "explicit" else ("*",)
    failures: Mapping[str, Sequence[str]] = {}
    try:
        failures = await models.load_all(None if "*" in names else names)
    except NotFoundError as error:
        if settings["exit-on-error"]:
            raise
        _logger.error("%s; the server is not ready", error)
    if failures and settings["exit-on-error"]:
        which, reasons = ", ".join(failures), "\n".join(f"- {reason}" for each in failures.values() for reason in each)
        refusal = ModelNotReadyError(f"failed to load all models; fix {which}, or add --exit-on-error=false\n{reasons}")
        refusal.logged = True
        raise refusal


async def poll_repositories(models: Models, every_seconds: float) -> None:
    """Load and unload what changes in the repositories, until it is cancelled."""
    while True:
        await asyncio.sleep(every_seconds)
        try:
            await models.follow_disk()
        except NotFoundError as error:
            _logger.error("%s; what is loaded stays loaded", error)
        except Exception:
            _logger.exception("polling the model repositories failed; trying again")
