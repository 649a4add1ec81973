"""The table of what to install is what the distributions of the workspace contribute."""

from naiad._plugins.known_plugins import KNOWN_PLUGINS
from naiad._plugins.registry import PluginRegistry


def test_what_to_install_is_reported_as_it_is() -> None:
    registry = PluginRegistry.discover()
    offered = {
        report.distribution: {(offer.kind, offer.name.removeprefix("--")) for offer in report.contributions}
        for report in registry.plugins
        if report.distribution != "naiad"
    }
    choices = {factory.name: factory.choice for factory in registry.schedulers()}

    for known in KNOWN_PLUGINS:
        reported = {(kind, name) for kind, names in known.names.items() for name in names.split()}
        reported = {
            ("options" if kind == "option" else kind, name)
            for kind, name in reported
            if kind not in ("parameter", "worker")
        }
        further = {(kind, name) for kind, name in reported if kind == "scheduler" and name not in choices}
        assert reported - further == {
            offer for offer in offered.pop(known.distribution) if offer[0] not in ("stage", "gate", "worker", "runner")
        }
        assert {name for _, name in further} <= set(choices.values())
    assert {name for name, offers in offered.items() if offers} == set()  # naiad-ray has a command alone
