"""Latent properties to look at: the words and contexts of each atom of a dictionary, how coherent they are, a page."""

# What a page looks at. Here, where nothing imports torch, for the plan.
TOKENS = 100_000  # of the text
SIZES = (0.25, 0.5, 1, 2)  # of the number of atoms, of each of which another dictionary is learned
ITERATIONS = 100  # at most, of these
