"""Single numbers for compiled loops: fp32 and bf16 read and written alike, e^x and the error function.

A bf16 number is the upper half of an fp32 one; numba has no type for it, arrays hold its bits as uint16.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from masklab.kernels.pointers import low_bits, pointer

NUMBER, WORD = ir.FloatType(), ir.IntType(32)
exact = numba.njit(forceinline=True, error_model="numpy", fastmath={"contract"})  # sums keep their order
single = np.float32


@intrinsic
def array_at(typing, address, like, rows, width):
    """The C-contiguous array [rows, width] of numbers such as `like` at an address."""
    kind = types.Array(like, 2, "C", aligned=False)

    def build(context, builder, signature, arguments):
        address, _, rows, width = arguments
        size = context.get_abi_sizeof(context.get_data_type(like))
        step = ir.Constant(width.type, size)
        made = context.make_array(kind)(context, builder)
        data = pointer(builder, address, context.get_data_type(like))
        strides = [builder.mul(width, step), step]
        context.populate_array(
            made, data=data, shape=[rows, width], strides=strides, itemsize=step, meminfo=None, parent=None
        )
        return made._getvalue()

    return kind(types.int64, like, types.int64, types.int64), build


@intrinsic
def read(typing, value):
    """A number of either kind as an fp32 one."""

    def build(context, builder, signature, arguments):
        if signature.args[0] == types.float32:
            return arguments[0]
        return builder.bitcast(builder.shl(builder.zext(arguments[0], WORD), ir.Constant(WORD, 16)), NUMBER)

    return types.float32(value), build


@intrinsic
def written(typing, value, like):
    """An fp32 number as one of the kind of `like`: rounded to the nearest, halves to even."""

    def build(context, builder, signature, arguments):
        if signature.args[1] == types.float32:
            return arguments[0]
        return low_bits(builder, arguments[0])

    return like(types.float32, like), build


@intrinsic
def nearest(typing, x):
    """The nearest whole number."""

    def build(context, builder, signature, arguments):
        return builder.call(builder.module.declare_intrinsic("llvm.rint", [NUMBER]), arguments)

    return types.float32(types.float32), build


@intrinsic
def power_of_two(typing, x):
    """2^x of a whole number."""

    def build(context, builder, signature, arguments):
        exponent = builder.add(builder.fptosi(arguments[0], WORD), ir.Constant(WORD, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(WORD, 23)), NUMBER)

    return types.float32(types.float32), build


@exact
def exp(x):
    """e^x to 1e-7 of it, for x of 0 or less; what lies below e^-87 is that."""
    x = single(-87.0) if x < single(-87.0) else x  # which leaves what is no number as it is
    n = nearest(x * single(1.44269504088896341))
    r = x - n * single(0.693359375)
    r = r + n * single(2.12194440e-4)
    p = single(1.9875691500e-4) * r + single(1.3981999507e-3)
    p = p * r + single(8.3334519073e-3)
    p = p * r + single(4.1665795894e-2)
    p = p * r + single(1.6666665459e-1)
    p = p * r + single(5.0000001201e-1)
    return (p * r * r + r + single(1.0)) * power_of_two(n)


@exact
def erf(x):
    """The error function to 4e-7: the rational function that Eigen and XLA use, 1 beyond 4."""
    x = min(max(x, single(-4.0)), single(4.0))
    z = x * x
    a = single(-2.72614225801306e-10) * z + single(2.77068142495902e-08)
    a = a * z + single(-2.10102402082508e-06)
    a = a * z + single(-5.69250639462346e-05)
    a = a * z + single(-7.34990630326855e-04)
    a = a * z + single(-2.95459980854025e-03)
    a = a * z + single(-1.60960333262415e-02)
    b = single(-1.45660718464996e-05) * z + single(-2.13374055278905e-04)
    b = b * z + single(-1.68282697438203e-03)
    b = b * z + single(-7.37332916720468e-03)
    b = b * z + single(-1.42647390514189e-02)
    return x * a / b
