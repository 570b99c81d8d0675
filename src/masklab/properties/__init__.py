"""Latent properties to look at: the words and contexts of each atom of a dictionary, how coherent they are, a page."""
