"""Vectors of LANES numbers for compiled code: one number of each of LANES sentences, added and multiplied at once.

Loops over a few lanes are not made vector instructions by the compiler unless it knows that no arrays overlap, which
it cannot. These become what the machine has, two AVX-512 registers or four of AVX2.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 16  # numba keeps compiled code until the file that uses this changes: after a change here, change chart.py
FUSE = ("contract",)  # a product and a sum may be one instruction


class _Lanes(types.Type):
    def __init__(self):
        super().__init__(name="lanes")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), LANES))


def _pointer(context, builder, kind, array, row):
    data = context.make_array(kind)(context, builder, array).data
    at = builder.gep(data, [builder.mul(row, ir.Constant(row.type, LANES))])
    return builder.bitcast(at, ir.VectorType(ir.DoubleType(), LANES).as_pointer())


@intrinsic
def zeros(typing):
    """LANES zeros."""

    def build(context, builder, signature, arguments):
        return ir.Constant(ir.VectorType(ir.DoubleType(), LANES), None)

    return _lanes(), build


@intrinsic
def load(typing, array, row):
    """Row `row` (an int64 of 0 or more) of a C-contiguous array [rows, LANES]."""

    def build(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, signature.args[0], *arguments), align=8)

    return _lanes(array, types.int64), build


@intrinsic
def store(typing, array, row, value):
    """Write LANES numbers to row `row` of an array [rows, LANES]."""

    def build(context, builder, signature, arguments):
        builder.store(arguments[2], _pointer(context, builder, signature.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _lanes), build


@intrinsic
def add_product(typing, total, left, right):
    """total + left * right, lane by lane; `left` may be one number."""

    def build(context, builder, signature, arguments):
        total, left, right = arguments
        if signature.args[1] != _lanes:
            left = _splat(builder, left)
        return builder.fadd(total, builder.fmul(left, right, flags=FUSE), flags=FUSE)

    return _lanes(_lanes, _lanes if left == _lanes else types.float64, _lanes), build


def _splat(builder, value):
    vector = ir.VectorType(ir.DoubleType(), LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)
