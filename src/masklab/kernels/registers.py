"""The innermost loop of a product of matrices: a block of sums that stays in registers over all of its depth.

It is written in assembler, for processors with AVX-512: a compiler keeps the sums in registers in one place and not in
the next, which halves the speed. A step is one number of depth, or two of bf16, which one instruction multiplies and
adds. Addresses and distances are in bytes.
"""

import itertools

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from masklab.kernels.vectors import LANES

COLUMNS = 2 * LANES
ROWS = 12  # at most: 24 of 32 registers hold sums
SIZES = (12, 8, 4, 2, 1)
LONG = ir.IntType(64)
ARGUMENTS = ("a", "a_row", "a_step", "b", "b_step", "depth", "c", "c_row", "begin")
WORKING = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


binding.initialize_native_asmparser()


def _assembler(rows: int, low: bool) -> str:
    """Of a block of `rows` x COLUMNS sums; $0 is where its arguments lie."""
    at = {name: f"{8 * place}($0)" for place, name in enumerate(ARGUMENTS)}
    bases, row, step, b, b_step, left = ("rax", "rcx", "rdx", "rsi"), "rdi", "r8", "r9", "r10", "r11"
    used = bases[: -(-rows // 3)]  # of every third row
    sums = [(2 * number, 2 * number + 1) for number in range(rows)]
    broadcast, add_product = ("vpbroadcastd", "vdpbf16ps") if low else ("vbroadcastss", "vfmadd231ps")

    def each_row(*texts):
        for number, (first, second) in enumerate(sums):
            yield from (text.format(first, second) for text in texts)
            if number + 1 < rows:
                yield "addq %rcx, %rax"

    lines = [f"movq {at['c']}, %rax", f"movq {at['c_row']}, %rcx", f"cmpq $$0, {at['begin']}", "jne 2f"]
    lines += each_row("vmovups (%rax), %zmm{0}", "vmovups 64(%rax), %zmm{1}")
    lines += ["jmp 3f", "2:", *(f"vpxord %zmm{sum}, %zmm{sum}, %zmm{sum}" for pair in sums for sum in pair), "3:"]
    lines += [f"movq {at[name]}, %{to}" for name, to in (("a", "rax"), ("a_row", row), ("a_step", step))]
    lines += [f"movq {at[name]}, %{to}" for name, to in (("b", b), ("b_step", b_step), ("depth", left))]
    for before, base in itertools.pairwise(used):
        lines += [f"leaq (%{before},%{row},2), %{base}", f"addq %{row}, %{base}"]
    lines += [f"testq %{left}, %{left}", "jle 5f", ".p2align 5", "4:"]
    lines += [f"vmovups (%{b}), %zmm24", f"vmovups 64(%{b}), %zmm25"]
    for number, (first, second) in enumerate(sums):
        place = (f"(%{bases[number // 3]})", f"(%{bases[number // 3]},%{row})", f"(%{bases[number // 3]},%{row},2)")
        value = f"%zmm{26 + number % 6}"
        lines += [f"{broadcast} {place[number % 3]}, {value}"]
        lines += [f"{add_product} %zmm24, {value}, %zmm{first}", f"{add_product} %zmm25, {value}, %zmm{second}"]
    lines += [f"addq %{step}, %{base}" for base in used]
    lines += [f"addq %{b_step}, %{b}", f"decq %{left}", "jne 4b", "5:"]
    lines += [f"movq {at['c']}, %rax", f"movq {at['c_row']}, %rcx"]
    lines += each_row("vmovups %zmm{0}, (%rax)", "vmovups %zmm{1}, 64(%rax)")
    return "\n".join(lines)


def _block(rows: int, low: bool):
    """An intrinsic that computes a block of `rows` x COLUMNS sums."""
    text = _assembler(rows, low)
    changed = [*WORKING, *(f"zmm{number}" for number in range(32)), "memory", "flags", "dirflag", "fpsr"]
    constraints = ",".join(["r", *(f"~{{{each}}}" for each in changed)])

    @intrinsic
    def block(typing, a, a_row, a_step, b, b_step, depth, c, c_row, begin):
        """c [rows, COLUMNS] = (c unless `begin`) + the sum over `depth` steps of a [rows] b [COLUMNS]."""

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


BLOCKS = [_block(rows, False) for rows in SIZES]
LOW_BLOCKS = [_block(rows, True) for rows in SIZES]
