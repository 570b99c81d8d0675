"""Compiled loops for training on a CPU: what lies between the products of matrices, done in one pass over memory.

numba keeps the machine code of a kernel until the file that the kernel stands in changes: after a change of vectors.py,
scalars.py, panels.py or kernel.py, change attend.py, rowwise.py and token_loss.py too.
"""
