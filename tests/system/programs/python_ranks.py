#!/usr/bin/env python3
"""MPI from Python, by ctypes: rank and neighbours exchange what generators, dictionaries and big numbers give, an
exception being handled. python_ranks.py FILE: until rank 0 finds FILE."""
import ctypes
import itertools
import os
import sys

MPI = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
WORLD = 0x44000000
LONG_LONG = 0x4C000809
SUM = 0x58000003
STATUS_IGNORE = ctypes.c_void_p(1)


def call(name, *arguments):
    if getattr(MPI, name)(*arguments) != 0:
        raise RuntimeError(name + " fails")


def number(name):
    value = ctypes.c_int()
    call(name, WORLD, ctypes.byref(value))
    return value.value


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


def exchange(value, to, source):
    mine, theirs = ctypes.c_longlong(value), ctypes.c_longlong()
    call("MPI_Sendrecv", ctypes.byref(mine), 1, LONG_LONG, to, 3, ctypes.byref(theirs), 1, LONG_LONG, source, 3,
         WORLD, STATUS_IGNORE)
    return theirs.value


def add(value):
    mine, total = ctypes.c_longlong(value), ctypes.c_longlong()
    call("MPI_Allreduce", ctypes.byref(mine), ctypes.byref(total), 1, LONG_LONG, SUM, WORLD)
    return total.value


def one_round(i, rank, size, large, seen):
    value = next(large) % 1000003
    try:
        seen[-1 - i]
    except KeyError as missing:
        theirs = exchange(value * size + rank, (rank + 1) % size, (rank - 1) % size)
        assert missing.args == (-1 - i,)
    assert theirs == value * size + (rank - 1) % size, (i, value, theirs)
    seen[i] = theirs
    assert add(theirs) == value * size * size + size * (size - 1) // 2


def main():
    call("MPI_Init", None, None)
    rank, size = number("MPI_Comm_rank"), number("MPI_Comm_size")
    large, seen = fibonacci(), {}
    for i in itertools.count():
        one_round(i, rank, size, large, seen)
        if add(int(rank == 0 and os.path.exists(sys.argv[1]))):
            break
    assert len(seen) == i + 1
    if rank == 0:
        print("ok python_ranks", flush=True)
    call("MPI_Finalize")


main()
