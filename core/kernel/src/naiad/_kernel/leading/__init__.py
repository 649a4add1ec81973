"""The thread that runs the event loop changes: quick models execute on the one that does, so that nobody is woken."""
