"""What compiled code is made with: addresses, which are whole numbers, as pointers; the type of bf16 numbers."""

from llvmlite import ir

from masklab.kernels.processor import features


def pointer(builder, address, kind):
    """The pointer to `kind` that an address, or another pointer, is.

    LLVM writes some addresses as distances from the null pointer, last of all; but numba joins code that is so far to
    other code, which it optimises once more, and there LLVM takes what lies behind the null pointer for nowhere and
    leaves out what is written to it. So it is told that something may lie there.
    """
    set.add(builder.function.attributes, "null_pointer_is_valid")  # which llvmlite does not know
    if isinstance(address.type, ir.PointerType):
        return builder.bitcast(address, kind.as_pointer())
    return builder.inttoptr(address, kind.as_pointer())


class _LowNumber(ir.Type):
    """bf16, of which llvmlite has no type."""

    null = "zeroinitializer"

    def _to_string(self):
        return "bfloat"

    def __eq__(self, other):
        return isinstance(other, _LowNumber)

    def __hash__(self):
        return hash(_LowNumber)


LOW_NUMBER = _LowNumber()
HALF, WORD = ir.IntType(16), ir.IntType(32)


def low_bits(builder, value):
    """The bits of bf16 numbers, of an fp32 one or of a vector of them: to the nearest, halves to even.

    By an instruction where the processor has it, which makes zeros of what is smaller than any normal number. LLVM
    would else call a function of a library that is not everywhere.
    """
    lanes = getattr(value.type, "count", None)

    def of(kind):
        return kind if lanes is None else ir.VectorType(kind, lanes)

    def all_of(number):
        return ir.Constant(of(WORD), number if lanes is None else [number] * lanes)

    if "avx512_bf16" in features():
        return builder.bitcast(builder.fptrunc(value, of(LOW_NUMBER)), of(HALF))
    bits = builder.bitcast(value, of(WORD))
    odd = builder.and_(builder.lshr(bits, all_of(16)), all_of(1))
    return builder.trunc(builder.lshr(builder.add(builder.add(bits, all_of(0x7FFF)), odd), all_of(16)), of(HALF))
