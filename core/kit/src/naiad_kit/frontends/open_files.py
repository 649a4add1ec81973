"""Limit on open files of the process, and so on connections."""

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
