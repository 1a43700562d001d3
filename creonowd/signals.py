"""Signals that mean nothing to a process that runs for long: by default each of them kills it.

`__main__` uses this before anything else is loaded, so it imports nothing of ours.
"""

import signal

# SIGPIPE and SIGXFSZ, which Python ignores by itself, come back as errors of a write.
_NAMED = (
    *("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPOLL", "SIGPWR"),
    *("SIGSTKFLT", "SIGEMT", "SIGTRAP", "SIGSYS", "SIGPIPE", "SIGXFSZ"),
)
_REAL_TIME = ("SIGRTMIN", "SIGRTMAX")


def ignore() -> None:
    """Ignore them, where the system has them, and every signal for real time."""
    named = (getattr(signal, name, None) for name in _NAMED)
    first, last = (getattr(signal, name, 0) for name in _REAL_TIME)
    for number in (*filter(None, named), *range(first, last + 1 if last else 0)):
        signal.signal(number, signal.SIG_IGN)
