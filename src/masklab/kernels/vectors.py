"""Vectors of LANES fp32 numbers for compiled code, read and written at addresses.

The compiler makes vector instructions of a loop if it can prove that no arrays overlap, which in loops over several it
cannot. These become one AVX-512 register each, two of AVX2, or what else the machine has.
"""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from masklab.kernels.pointers import low_bits, pointer

LANES = 16
FUSE = ("contract",)  # a product and a sum may be one instruction
NUMBER, WORD = ir.FloatType(), ir.IntType(32)
VECTOR = ir.VectorType(NUMBER, LANES)
inlined = numba.njit(forceinline=True, error_model="numpy", fastmath={"contract"})


class _Vector(types.Type):
    def __init__(self):
        super().__init__(name="sixteen")


vector = _Vector()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


def _all(kind, value):
    return ir.Constant(ir.VectorType(kind, LANES), [value] * LANES)


def _at(builder, address, index, kind):
    """Pointer to a vector of `kind` that begins `index` numbers behind an address."""
    start = pointer(builder, address, kind)
    return builder.bitcast(builder.gep(start, [index]), ir.VectorType(kind, LANES).as_pointer())


def splat(builder, value):
    """A vector of one number."""
    one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), value, ir.Constant(WORD, 0))
    return builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), _all(WORD, 0))


def _lanewise(build, count: int):
    """An intrinsic of `count` vectors; one number stands for a vector of it."""

    def typed(*given):
        kinds = [vector if kind == vector else types.float32 for kind in given]

        def generate(context, builder, signature, arguments):
            pairs = zip(kinds, arguments, strict=True)
            return build(builder, *(one if kind == vector else splat(builder, one) for kind, one in pairs))

        return vector(*kinds), generate

    if count == 1:
        return intrinsic(lambda typing, a: typed(a))
    if count == 2:
        return intrinsic(lambda typing, a, b: typed(a, b))
    return intrinsic(lambda typing, a, b, c: typed(a, b, c))


def _fma(builder, total, left, right):
    return builder.fadd(total, builder.fmul(left, right, flags=FUSE), flags=FUSE)


def _larger(builder, left, right):
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def _at_least(builder, value, bound):
    return builder.select(builder.fcmp_ordered("<", value, bound), bound, value)


def _called(builder, name: str, x):
    """LLVM's own function of a vector."""
    kind = ir.FunctionType(VECTOR, [VECTOR])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32"), [x])


def _power_of_two(builder, x):
    exponent = builder.add(builder.fptosi(x, ir.VectorType(WORD, LANES)), _all(WORD, 127))
    return builder.bitcast(builder.shl(exponent, _all(WORD, 23)), VECTOR)


def _to_low_and_back(builder, x):
    bits = builder.zext(low_bits(builder, x), ir.VectorType(WORD, LANES))
    return builder.bitcast(builder.shl(bits, _all(WORD, 16)), VECTOR)


filled = _lanewise(lambda builder, a: a, 1)  # a vector of one number
add = _lanewise(lambda builder, a, b: builder.fadd(a, b), 2)
subtract = _lanewise(lambda builder, a, b: builder.fsub(a, b), 2)
multiply = _lanewise(lambda builder, a, b: builder.fmul(a, b), 2)
divide = _lanewise(lambda builder, a, b: builder.fdiv(a, b), 2)
root = _lanewise(lambda builder, a: _called(builder, "sqrt", a), 1)
larger = _lanewise(_larger, 2)
at_least = _lanewise(_at_least, 2)  # the bound where a number is below it; what is no number stays so
add_product = _lanewise(_fma, 3)  # total + left right
nearest = _lanewise(lambda builder, a: _called(builder, "rint", a), 1)  # whole numbers
power_of_two = _lanewise(_power_of_two, 1)  # of whole numbers
rounded = _lanewise(_to_low_and_back, 1)  # to bf16, still as fp32 numbers


@intrinsic
def number(typing, address, index):
    """The fp32 number `index` numbers behind an address."""

    def build(context, builder, signature, arguments):
        start = pointer(builder, arguments[0], NUMBER)
        return builder.load(builder.gep(start, [arguments[1]]), align=4)

    return types.float32(types.int64, types.int64), build


@intrinsic
def number_low(typing, address, index):
    """The bf16 number `index` numbers behind an address."""

    def build(context, builder, signature, arguments):
        start = pointer(builder, arguments[0], ir.IntType(16))
        bits = builder.load(builder.gep(start, [arguments[1]]), align=2)
        return builder.bitcast(builder.shl(builder.zext(bits, WORD), ir.Constant(WORD, 16)), NUMBER)

    return types.float32(types.int64, types.int64), build


@intrinsic
def put(typing, address, index, value):
    """Write one fp32 number."""

    def build(context, builder, signature, arguments):
        start = pointer(builder, arguments[0], NUMBER)
        builder.store(arguments[2], builder.gep(start, [arguments[1]]), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), build


@intrinsic
def put_low(typing, address, index, value):
    """Write one number rounded to bf16."""

    def build(context, builder, signature, arguments):
        half = low_bits(builder, arguments[2])
        start = pointer(builder, arguments[0], ir.IntType(16))
        builder.store(half, builder.gep(start, [arguments[1]]), align=2)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float32), build


@intrinsic
def word(typing, address, index):
    """The 32 bits `index` words behind an address."""

    def build(context, builder, signature, arguments):
        start = pointer(builder, arguments[0], WORD)
        return builder.sext(builder.load(builder.gep(start, [arguments[1]]), align=2), ir.IntType(64))

    return types.int64(types.int64, types.int64), build


@intrinsic
def put_word(typing, address, index, value):
    """Write 32 bits."""

    def build(context, builder, signature, arguments):
        start = pointer(builder, arguments[0], WORD)
        builder.store(builder.trunc(arguments[2], WORD), builder.gep(start, [arguments[1]]), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def word_of(typing, above, below, index, both):
    """A bf16 number, and behind it that of the row below, or 0 unless `both`, as 32 bits."""

    def build(context, builder, signature, arguments):
        above, below, index, both = arguments
        half, long = ir.IntType(16), ir.IntType(64)
        first, second = (pointer(builder, each, half) for each in (above, below))
        second = builder.select(both, builder.gep(second, [index]), builder.gep(first, [index]))
        upper = builder.select(both, builder.load(second, align=2), ir.Constant(half, 0))
        lower = builder.load(builder.gep(first, [index]), align=2)
        return builder.or_(builder.zext(lower, long), builder.shl(builder.zext(upper, long), ir.Constant(long, 16)))

    return types.int64(types.int64, types.int64, types.int64, types.boolean), build


@intrinsic
def interleaved(typing, above, below, target):
    """Write LANES pairs of bf16 numbers: one of the row above, one of the row below."""

    def build(context, builder, signature, arguments):
        above, below, target = arguments
        half, zero = ir.IntType(16), ir.Constant(ir.IntType(64), 0)
        wide = ir.VectorType(WORD, LANES)
        lower, upper = (
            builder.zext(builder.load(_at(builder, each, zero, half), align=2), wide) for each in (above, below)
        )
        pairs = builder.or_(lower, builder.shl(upper, _all(WORD, 16)))
        builder.store(pairs, _at(builder, target, zero, WORD), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def load(typing, address, index):
    """LANES fp32 numbers from `index` numbers behind an address on."""

    def build(context, builder, signature, arguments):
        return builder.load(_at(builder, *arguments, NUMBER), align=4)

    return vector(types.int64, types.int64), build


@intrinsic
def store(typing, address, index, value):
    """Write LANES fp32 numbers."""

    def build(context, builder, signature, arguments):
        builder.store(arguments[2], _at(builder, *arguments[:2], NUMBER), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, vector), build


@intrinsic
def load_low(typing, address, index):
    """LANES bf16 numbers as fp32 ones."""

    def build(context, builder, signature, arguments):
        half = builder.load(_at(builder, *arguments, ir.IntType(16)), align=2)
        return builder.bitcast(builder.shl(builder.zext(half, ir.VectorType(WORD, LANES)), _all(WORD, 16)), VECTOR)

    return vector(types.int64, types.int64), build


@intrinsic
def store_low(typing, address, index, value):
    """Write LANES numbers rounded to bf16: to the nearest, halves to even."""

    def build(context, builder, signature, arguments):
        half = low_bits(builder, arguments[2])
        builder.store(half, _at(builder, *arguments[:2], ir.IntType(16)), align=2)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, vector), build


@intrinsic
def kept(typing, address, index, dropped, scale):
    """Of LANES random 16-bit integers those of at least `dropped` as `scale`, the others as 0."""

    def build(context, builder, signature, arguments):
        bits = builder.load(_at(builder, *arguments[:2], ir.IntType(16)), align=2)
        least = builder.trunc(arguments[2], ir.IntType(16))
        kind = ir.VectorType(ir.IntType(16), LANES)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), least, ir.Constant(WORD, 0))
        least = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _all(WORD, 0))
        keep = builder.icmp_signed(">=", bits, least)
        return builder.select(keep, splat(builder, arguments[3]), _all(NUMBER, 0.0))

    return vector(types.int64, types.int64, types.int64, types.float32), build


@intrinsic
def first(typing, value, count, other):
    """The first `count` lanes of a vector, the rest being `other`."""

    def build(context, builder, signature, arguments):
        value, count, other = arguments
        kind = ir.VectorType(ir.IntType(64), LANES)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), count, ir.Constant(WORD, 0))
        counts = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _all(WORD, 0))
        inside = builder.icmp_signed("<", ir.Constant(kind, list(range(LANES))), counts)
        return builder.select(inside, value, splat(builder, other))

    return vector(vector, types.int64, types.float32), build


def _halves(builder, value, join):
    """One number of a vector's lanes: its halves joined, again and again."""
    width = LANES
    while width > 1:
        width //= 2
        undefined = ir.Constant(value.type, ir.Undefined)
        parts = []
        for start in (0, width):
            places = ir.Constant(ir.VectorType(WORD, width), list(range(start, start + width)))
            parts.append(builder.shuffle_vector(value, undefined, places))
        value = join(builder, *parts)
    return builder.extract_element(value, ir.Constant(WORD, 0))


@intrinsic
def total(typing, value):
    """The sum of all lanes."""

    def build(context, builder, signature, arguments):
        return _halves(builder, arguments[0], lambda builder, a, b: builder.fadd(a, b))

    return types.float32(vector), build


@intrinsic
def largest(typing, value):
    """The largest lane."""

    def build(context, builder, signature, arguments):
        return _halves(builder, arguments[0], _larger)

    return types.float32(vector), build


@intrinsic
def transpose(typing, source, stride, target, target_stride):
    """Write the transpose of a square of LANES x LANES fp32 numbers, whose rows lie `stride` numbers apart."""

    def build(context, builder, signature, arguments):
        source, stride, target, target_stride = arguments
        rows = []
        for row in range(LANES):
            index = builder.mul(stride, ir.Constant(ir.IntType(64), row))
            rows.append(builder.load(_at(builder, source, index, NUMBER), align=4))
        half = LANES // 2
        while half:  # the two blocks beside the diagonal change places, in blocks of half the size each time
            for row in range(LANES):
                if row & half == 0:
                    upper, lower = rows[row], rows[row + half]
                    swap = {0: [], 1: []}
                    for lane in range(LANES):
                        right = bool(lane & half)
                        swap[0].append(LANES + lane - half if right else lane)
                        swap[1].append(LANES + lane if right else lane + half)
                    rows[row], rows[row + half] = (
                        builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(WORD, LANES), places))
                        for places in swap.values()
                    )
            half //= 2
        for row, value in enumerate(rows):
            index = builder.mul(target_stride, ir.Constant(ir.IntType(64), row))
            builder.store(value, _at(builder, target, index, NUMBER), align=4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), build


LOWEST = np.float32(-87.0)


@inlined
def exp(x):
    """e^x to 2e-7 of it, for x up to 80; what lies below e^-87 is that."""
    x = at_least(x, LOWEST)
    n = nearest(multiply(x, np.float32(1.44269504088896341)))
    r = add_product(add_product(x, n, np.float32(-0.693359375)), n, np.float32(2.12194440e-4))
    p = add_product(np.float32(1.3981999507e-3), r, np.float32(1.9875691500e-4))
    p = add_product(np.float32(8.3334519073e-3), p, r)
    p = add_product(np.float32(4.1665795894e-2), p, r)
    p = add_product(np.float32(1.6666665459e-1), p, r)
    p = add_product(np.float32(5.0000001201e-1), p, r)
    p = add_product(add(r, np.float32(1.0)), multiply(p, r), r)
    return multiply(p, power_of_two(n))
