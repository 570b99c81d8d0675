"""`implicit-bias`: Same Pre-training Loss, Better Downstream (Liu, Xie, Li and Ma 2023)."""
