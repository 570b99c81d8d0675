"""Compiled functions on torch's own threads.

A kernel is a `numba.cfunc` of one address, of 64-bit arguments. It asks for tiles of its work, one after the other,
until there are no more (`next_tile`), so that several threads share them out; a tile's numbers do not depend on which
thread makes it. Threads are those of torch's own pool, where its OpenMP library can be asked for them: a second pool
would wait on the same cores. Otherwise one thread does the work.
"""

import struct
import threading

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from masklab.inside_libc import function_at, parallel
from masklab.kernels.pointers import pointer

FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums in any order: that of the compiled code, always the same
MOST = 48  # arguments of a kernel
TILES = 1  # place of their number; at 0 stands the number of the next tile, from 2 on what `launch` was given
_mine = threading.local()
_written = {}  # by kernel and number of its arguments: what writes them


def kernel(function):
    """Compile `function(address)` for `launch`."""
    how = {"error_model": "numpy", "fastmath": FAST}
    try:
        return numba.cfunc(types.void(types.voidptr), cache=True, **how)(function)
    except RuntimeError as error:  # where nothing can be written: neither beside the source nor at home
        if "locator" not in str(error):
            raise
        return numba.cfunc(types.void(types.voidptr), **how)(function)


def launch(compiled, tiles: int, *arguments) -> None:
    """Run a kernel on its tiles. arguments: whole numbers and addresses, and floats; they stand from 2 on. Each place
    of a kernel has a number of one of the two kinds, always."""
    try:
        room, address = _mine.room
    except AttributeError:
        numbers = np.zeros(MOST, np.int64)
        room, address = _mine.room = numbers.data.cast("B"), numbers.ctypes.data
    write = _written.get((compiled, len(arguments)))
    if write is None:
        kinds = "".join("d" if isinstance(each, float) else "q" for each in arguments)
        write = _written[compiled, len(arguments)] = struct.Struct(f"=qq{kinds}").pack_into
    write(room, 0, 0, tiles, *arguments)
    threads = min(torch.get_num_threads(), tiles)
    if threads > 1 and (share := parallel()) is not None:
        share(compiled.address, address, threads, 0)
    elif tiles:
        function_at(compiled.address)(address)


@intrinsic
def next_tile(typing, arguments):
    """The number of a tile that no thread has had yet."""

    def build(context, builder, signature, given):
        counter = pointer(builder, given[0], ir.IntType(64))
        return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(types.voidptr), build


@intrinsic
def whole(typing, arguments, place):
    """The whole number, or address, at a place among a kernel's arguments."""

    def build(context, builder, signature, given):
        start = pointer(builder, given[0], ir.IntType(64))
        return builder.load(builder.gep(start, [given[1]]))

    return types.int64(types.voidptr, types.int64), build


@intrinsic
def real(typing, arguments, place):
    """The float at a place among a kernel's arguments, in fp32."""

    def build(context, builder, signature, given):
        start = pointer(builder, given[0], ir.DoubleType())
        return builder.fptrunc(builder.load(builder.gep(start, [given[1]])), ir.FloatType())

    return types.float32(types.voidptr, types.int64), build


@intrinsic
def number_of(typing, address, place):
    """The int64 at a place behind an address."""

    def build(context, builder, signature, given):
        start = pointer(builder, given[0], ir.IntType(64))
        return builder.load(builder.gep(start, [given[1]]))

    return types.int64(types.int64, types.int64), build
