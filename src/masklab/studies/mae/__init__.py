"""`mae`: Representation Deficiency in Masked Language Modeling (Meng et al. 2024)."""
