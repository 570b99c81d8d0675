"""Compiled loops for training on a CPU: what lies between the products of matrices, done in one pass over memory."""
