"""The host of a rank on a virtual cluster: the namespaces that FOLDER/rank<R>.namespaces names (docs/protocol.md, Templates).

The template enters them and forks the rank there, so that no socket of the rank can be older than its network. The rank looks
whether it is where it was told: outside it would find the others nowhere, or on an interface without a line.
"""

import ctypes
import os
import sys

FLAGS = {"net": 0x40000000, "uts": 0x04000000}  # setns(2): CLONE_NEWNET, CLONE_NEWUTS; os.setns is of Python 3.12
libc = ctypes.CDLL(None, use_errno=True)


def read(folder, rank):
    """[kind, path, inode] of each."""
    with open(f"{folder}/rank{rank}.namespaces") as file:
        return [line.split() for line in file]


def enter(folder, rank):
    for kind, path, _ in read(folder, rank):
        fd = os.open(path, os.O_RDONLY)
        if libc.setns(fd, FLAGS[kind]) != 0:
            sys.exit(f"template: rank {rank} cannot enter {path}: {os.strerror(ctypes.get_errno())}")
        os.close(fd)


def verify(folder, rank):
    for kind, path, inode in read(folder, rank):
        found = os.stat(f"/proc/self/ns/{kind}").st_ino
        if found != int(inode):
            sys.exit(f"rank {rank} is in {kind}:[{found}], expected [{inode}] ({path})")
