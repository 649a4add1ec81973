"""Pages of the dashboard, rendered by the server so that they can be read without JavaScript."""

import json
from asyncio import to_thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from naiad import PluginRegistry
from naiad.errors import NaiadError
from naiad_dashboard import texts
from naiad_dashboard.access import Restrictions
from naiad_dashboard.bars import bars
from naiad_dashboard.configurations import is_in_store, marked_lines, written_config
from naiad_dashboard.details import Details
from naiad_dashboard.following import Follower
from naiad_dashboard.graphs import graph
from naiad_dashboard.overview import history, row, rows
from naiad_dashboard.readings import phases
from naiad_dashboard.sampler import Sampler
from naiad_dashboard.spans import spans
from naiad_dashboard.trying import Trials
from naiad_kit.backends.frameworks import installed_framework

if TYPE_CHECKING:
    from naiad.server import ServerApi


class Templates:
    """The templates, with the filters of figures and links; everything is escaped."""

    def __init__(self, server: "ServerApi", restrictions: Restrictions) -> None:
        self._server = server
        self._restrictions = restrictions
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("naiad_dashboard"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        filters = {"seconds": texts.seconds, "number": texts.number, "percent": texts.percent, "octets": texts.octets}
        self._environment.filters |= {
            **filters,
            "clock": texts.clock,
            "spark": texts.spark,
            "segment": segment,
            "spans": spans,
        }
        self._environment.filters["script"] = script_json

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page of that template; its head line shows the server's metadata and health to those who may see them."""
        server = self._server
        hidden = {api for api in ("metadata", "health") if self._restrictions.refusal((api,), request.headers)}
        common = {
            "base": request.scope.get("naiad_base", ""),
            "server": None if "metadata" in hidden else server.metadata(),
            "readiness": None if "health" in hidden else server.ready(),
            "draining": server.draining,
            "controls": bool(server.settings["dashboard-token-file"]),
        }
        return HTMLResponse(self._environment.get_template(template).render({**common, **values}), status)


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def script_json(value: Any) -> str:
    """JSON for the attribute of an element, which is escaped as any text."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class Pages:
    """The pages that show something."""

    def __init__(
        self,
        server: "ServerApi",
        sampler: Sampler,
        details: Details,
        follower: Follower,
        templates: Templates,
        trials: Trials,
        restrictions: Restrictions,
    ) -> None:
        self._server = server
        self._sampler = sampler
        self._details = details
        self._follower = follower
        self._templates = templates
        self._trials = trials
        self._restrictions = restrictions

    async def models(self, request: Request) -> Response:
        """All models, with the server's last log lines for callers who may read them."""
        await self._sampler.look()
        header = self._restrictions.refusal(("logging",), request.headers)
        log = () if header else self._details.log_lines()
        return self._templates.page(
            request, "models.html", rows=rows(self._server, self._sampler), log=log, log_header=header
        )

    async def model(self, request: Request) -> Response:
        """One version of a model, by default the one that serves requests without a version."""
        name = request.path_params["model"]
        await self._sampler.look()
        version = request.path_params.get("version") or self._version(name)
        if version is None:
            return self.absent(request, f"The server has no model '{name}'.")
        details = self._details.of(name, version)
        versions = sorted({entry.version for entry in self._server.index() if entry.name == name})
        if version not in versions:
            return self.absent(request, f"The model '{name}' has no version {version}.")
        values: dict[str, Any] = {"metadata": None, "config": (), "source": "", "graph": None, "trial": None}
        try:
            metadata = values["metadata"] = self._server.model_metadata(name, version)
            values["trial"] = self._trials.form(name, version, metadata)
            config = self._server.model_config(name, version)
            roots = self._server.settings["model-repository"]
            in_store = await to_thread(is_in_store, roots, name)
            written = config if in_store else await to_thread(written_config, roots, name)
            values["source"] = "store" if in_store else "file" if written is not None else ""
            values["config"] = marked_lines(config, written)
            if config.ensemble_scheduling is not None:
                values["graph"] = self._ensemble(name, version)
        except NaiadError:
            pass  # a version that does not serve has its state and log alone
        track = self._sampler.tracks.get((name, version))
        return self._templates.page(
            request,
            "model.html",
            name=name,
            version=version,
            versions=versions,
            details=details,
            bars=bars(details),
            history=history(track.points) if track is not None else None,
            **values,
        )

    async def ensembles(self, request: Request) -> Response:
        """Every ensemble as a graph, with the time of each step."""
        await self._sampler.look()
        drawn = [
            self._ensemble(name, version)
            for (name, version), track in sorted(self._sampler.tracks.items())
            if track.report.config.ensemble_scheduling is not None
        ]
        return self._templates.page(request, "ensembles.html", ensembles=drawn)

    async def plugins(self, request: Request) -> Response:
        """Every plugin: what it brings, or why it was skipped."""
        registry = getattr(self._server, "plugins", None)  # of `naiad.Server`; another ServerApi may have none
        listed = registry.plugins if isinstance(registry, PluginRegistry) else ()
        reports = sorted(listed, key=lambda each: (not each.skipped, each.name))
        return self._templates.page(request, "plugins.html", plugins=[_plugin(each) for each in reports])

    async def slow(self, request: Request) -> Response:
        """The slowest requests of the last minutes."""
        slowest = self._follower.slowest()
        return self._templates.page(request, "slow.html", requests=slowest, follower=self._follower)

    def control(self, request: Request, settings: dict[str, Any]) -> Response:
        """Loads, unloads and settings, for those with the token."""
        names = sorted({entry.name for entry in self._server.index()})
        explicit = self._server.settings["model-control-mode"] == "explicit"
        return self._templates.page(request, "control.html", names=names, explicit=explicit, settings=settings)

    def absent(self, request: Request, text: str) -> Response:
        """A page that says what is not there."""
        return self._templates.page(request, "message.html", 404, title="Not here", text=text)

    def _version(self, name: str) -> int | None:
        """The largest version that serves, else the largest known; None for an unknown model."""
        entries = [entry for entry in self._server.index() if entry.name == name]
        ready = [entry.version for entry in entries if entry.state == "READY"]
        return max(ready or [entry.version for entry in entries], default=None)

    def _ensemble(self, name: str, version: int) -> dict[str, Any]:
        config = self._server.model_config(name, version)
        drawing = graph(config)
        return {
            "name": name,
            "version": version,
            "row": row(name, version, None, self._sampler.tracks.get((name, version))),
            "graphs": {"right": drawing, "down": graph(config, down=True)},
            "times": {each.model: self._step_time(each.model, each.version) for each in drawing.boxes if each.model},
        }

    def _step_time(self, model: str, version: int) -> dict[str, float | None]:
        """The mean time of a step's model in its queue and computing, over the last seconds, or since its load."""
        candidates = [key for key in self._sampler.tracks if key[0] == model and version in (0, key[1])]
        if not candidates:
            return {"queue": None, "compute": None}
        track = self._sampler.tracks[max(candidates)]
        means = {each.name: each.mean for each in phases(track.window, track.readings[-1])}
        if means["request"] is None:  # nothing in the last seconds
            means = {each.name: each.mean for each in phases(None, track.readings[-1])}
        parts = [means[name] for name in ("input", "infer", "output")]
        compute = sum(part for part in parts if part is not None) if means["request"] is not None else None
        return {"queue": means["queue"], "compute": compute}


def _plugin(report: Any) -> dict[str, Any]:
    """One plugin, with the framework of each backend or what to install."""
    offers = []
    for each in report.contributions:
        if each.kind != "options":
            framework = installed_framework(each.framework) if each.framework else ""
            missing = f"{each.framework[0]} is not installed" if each.framework and not framework else ""
            advice = f"pip install '{each.install}'" if missing and each.install else ""
            offers.append({"kind": each.kind, "name": each.name, "framework": framework or missing, "install": advice})
    return {"report": report, "offers": offers}
