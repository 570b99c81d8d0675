"""Addresses, which are whole numbers in compiled code, as pointers."""

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
