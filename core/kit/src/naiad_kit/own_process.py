"""Whether this process is a model's own: started for its instances, with the server in another one.

There a model may write to its inputs, as nothing else reads them; its modules can be on `sys.path`, as there is no
other model; and its outputs are copied for the server before any other code of the model runs on the same thread, so
that they need no copy against what it does to them later.
"""

_is_own = False


def enter_own_process() -> None:
    """Called once by what runs the instances of a model in their own process, before the model's files are imported."""
    global _is_own
    _is_own = True


def in_own_process() -> bool:
    """Whether this process is a model's own.

    Plugins that load models use it to leave out what protects a server from one model among several.
    """
    return _is_own
