"""Sparse coding: dictionaries, non-negative lasso codes, and the codes of a corpus on disk."""
