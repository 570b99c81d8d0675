"""Theorems of the papers on cases small enough to compute."""
