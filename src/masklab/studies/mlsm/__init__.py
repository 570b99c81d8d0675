"""`mlsm`: Better Together: Jointly Using Masked Latent Semantic Modeling and Masked Language Modeling (Berend 2023)."""
