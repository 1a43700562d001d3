"""Run a program that we do not trust: as nobody, in a network of its own that leads nowhere."""

import ctypes
import fcntl
import os
import socket
import struct

NOBODY = 65534
CLONE_NEWNET = 0x40000000
SET_FLAGS = 0x8914
UP = 0x1


def leave_network_and_root() -> None:
    """Give this process a network that has only loopback, then make it nobody; for root on Linux."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "a network of its own was refused")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
