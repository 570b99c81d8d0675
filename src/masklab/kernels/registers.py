"""The innermost loop of a product of matrices: a block of sums that stays in registers over all of its depth.

It is written in assembler, for processors with AVX-512: a compiler keeps the sums in registers in one place and not in
the next, which halves the speed. A step is one number of depth, or two of bf16, which one instruction multiplies and
adds. Addresses and distances are in bytes.
"""

import itertools

import numba
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from masklab.kernels.vectors import LANES

COLUMNS = 2 * LANES
ROWS = 12  # at most: 24 of 32 registers hold sums
SIZES = (12, 8, 4, 2, 1)
LONG = ir.IntType(64)
ARGUMENTS = ("a", "a_row", "a_step", "b", "b_step", "depth", "c", "c_row", "start", "more")
WORKING = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


binding.initialize_native_asmparser()


def _assembler(rows: int, low: bool) -> str:
    """Of a block of `rows` x COLUMNS sums; $0 is where its arguments lie."""
    at = {name: f"{8 * place}($0)" for place, name in enumerate(ARGUMENTS)}
    bases, row, step, b, b_step, left = ("rax", "rcx", "rdx", "rsi"), "rdi", "r8", "r9", "r10", "r11"
    used = bases[: -(-rows // 3)]  # of every third row
    vectors = range(COLUMNS // LANES)
    sums = [[len(vectors) * number + vector for vector in vectors] for number in range(rows)]
    broadcast, add_product = ("vpbroadcastd", "vdpbf16ps") if low else ("vbroadcastss", "vfmadd231ps")

    def each_row(text):
        """`text` for every vector of c: {0} is its register, {1} its place."""
        yield from (f"movq {at['c']}, %rax", f"movq {at['c_row']}, %rcx")
        for number, own in enumerate(sums):
            yield from (text.format(f"%zmm{register}", f"{64 * vector}(%rax)") for vector, register in enumerate(own))
            if number + 1 < rows:
                yield "addq %rcx, %rax"

    lines = [*each_row("prefetchw {1}")]  # it is written long after
    lines += [f"movq {at['start']}, %rax"]
    lines += [f"vmovups {64 * vector}(%rax), %zmm{register}" for own in sums for vector, register in enumerate(own)]
    lines += [f"movq {at[name]}, %{to}" for name, to in (("a", "rax"), ("a_row", row), ("a_step", step))]
    lines += [f"movq {at[name]}, %{to}" for name, to in (("b", b), ("b_step", b_step), ("depth", left))]
    for before, base in itertools.pairwise(used):
        lines += [f"leaq (%{before},%{row},2), %{base}", f"addq %{row}, %{base}"]
    lines += [f"testq %{left}, %{left}", "jle 5f", ".p2align 5", "4:"]
    lines += [f"vmovups {64 * vector}(%{b}), %zmm{24 + vector}" for vector in vectors]
    for number, own in enumerate(sums):
        base = bases[number // 3]
        place, value = (f"(%{base})", f"(%{base},%{row})", f"(%{base},%{row},2)")[number % 3], f"%zmm{26 + number % 6}"
        lines += [f"{broadcast} {place}, {value}"]
        lines += [f"{add_product} %zmm{24 + vector}, {value}, %zmm{register}" for vector, register in enumerate(own)]
    lines += [f"addq %{step}, %{base}" for base in used]
    lines += [f"addq %{b_step}, %{b}", f"decq %{left}", "jne 4b", "5:"]
    lines += [f"cmpq $$0, {at['more']}", "je 6f", *each_row("vaddps {1}, {0}, {0}"), "6:"]
    return "\n".join([*lines, *each_row("vmovups {0}, {1}")])


def _block(rows: int, low: bool):
    """An intrinsic that computes a block of `rows` x COLUMNS sums."""
    text = _assembler(rows, low)
    changed = [*WORKING, *(f"zmm{number}" for number in range(32)), "memory", "flags", "dirflag", "fpsr"]
    constraints = ",".join(["r", *(f"~{{{each}}}" for each in changed)])

    @intrinsic
    def block(typing, a, a_row, a_step, b, b_step, depth, c, c_row, start, more):
        """c [rows, COLUMNS] = start [COLUMNS] + the sum over `depth` steps of a [rows] b [COLUMNS] (+ c if `more`)."""

        def build(context, builder, signature, arguments):
            kind = ir.ArrayType(LONG, len(ARGUMENTS))
            place = cgutils.alloca_once(builder, kind)
            for number, value in enumerate(arguments):
                builder.store(value, cgutils.gep_inbounds(builder, place, 0, number))
            function = ir.FunctionType(ir.VoidType(), [kind.as_pointer()])
            builder.call(ir.InlineAsm(function, text, constraints, True), [place])
            return context.get_dummy_value()

        return types.void(*[types.int64] * len(ARGUMENTS)), build

    return block


def _any_rows(low: bool):
    """A function that computes blocks of any number of rows."""
    twelve, eight, four, two, one = (_block(rows, low) for rows in SIZES)

    @numba.njit(error_model="numpy", nogil=True)
    def rows_of(a, a_row, a_step, b, b_step, depth, c, c_row, rows, start, more):
        i = 0
        while i + 12 <= rows:
            twelve(a + i * a_row, a_row, a_step, b, b_step, depth, c + i * c_row, c_row, start, more)
            i += 12
        if i + 8 <= rows:
            eight(a + i * a_row, a_row, a_step, b, b_step, depth, c + i * c_row, c_row, start, more)
            i += 8
        if i + 4 <= rows:
            four(a + i * a_row, a_row, a_step, b, b_step, depth, c + i * c_row, c_row, start, more)
            i += 4
        if i + 2 <= rows:
            two(a + i * a_row, a_row, a_step, b, b_step, depth, c + i * c_row, c_row, start, more)
            i += 2
        if i < rows:
            one(a + i * a_row, a_row, a_step, b, b_step, depth, c + i * c_row, c_row, start, more)

    return rows_of


rows_whole, rows_low = _any_rows(False), _any_rows(True)
