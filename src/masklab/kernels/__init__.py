"""Compiled loops for training on a CPU: products of matrices, where they are faster than those of libraries, and what
lies between products, done in one pass over memory.

numba keeps the machine code of a kernel until the file that the kernel stands in changes: after a change of a file
without kernels (vectors.py, scalars.py, panels.py, pointers.py, registers.py, kernel.py), touch those that have some.
"""
