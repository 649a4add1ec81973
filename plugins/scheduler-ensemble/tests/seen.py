"""What a server with ensembles shows, and how to start one."""

from naiad import Server

from .parts import Parts


def explicit(parts: Parts, *names: str):  # type: ignore[no-untyped-def]
    return parts.serving(model_control_mode="explicit", load_model=names)


def states(server: Server) -> dict[str, str]:
    return {entry.name: entry.state for entry in server.index() if entry.state}


def reason(server: Server, name: str) -> str:
    return next(entry.reason for entry in server.index() if entry.name == name)
