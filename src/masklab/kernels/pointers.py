"""What compiled code is made with: addresses, which are whole numbers, as pointers; the type of bf16 numbers."""

from llvmlite import ir

BYTE = ir.IntType(8)


def pointer(builder, address, kind=BYTE):
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


LOW_NUMBER = _LowNumber()  # rounded to it, fp32 numbers go to the nearest, halves to even
