"""Locks on files (flock), and file systems that have none: some parallel ones, mounted without; NFS, for those who may
only read the file."""

import errno
import fcntl

NONE = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF)


def lock(file, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file until it is closed. False: its file system has no locks. OSError: another process holds it."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NONE:
            raise
        return False
    return True


def holder_ended(path) -> bool | None:
    """Whether the process that held a file's lock has ended. False: it has not, or nobody knows; None: no such file."""
    try:
        with open(path, "r+") as file:
            return lock(file)
    except FileNotFoundError:
        return None
    except OSError:
        return False
