"""Connection limits of every frontend: the timeouts of clients, and the limit of open files on their number."""

IDLE_SECONDS = 75.0
"""How long an idle connection is kept: longer than the usual interval between requests."""
HEAD_SECONDS = 20.0
BODY_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 4096
"""The timeout of a body grows by a second for this many bytes that have arrived, so that large uploads over slow lines
continue."""

NO_LIMIT = 1 << 20
"""What stands for no limit, and for systems that have none."""


def open_file_limit() -> int:
    """The limit of open files as it is now (getrlimit(2)); 2^20 where there is none."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return NO_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return NO_LIMIT if soft == resource.RLIM_INFINITY else soft
