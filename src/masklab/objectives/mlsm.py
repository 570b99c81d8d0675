"""Masked latent semantic modelling (Berend 2023, section 2.3)."""

import math

from torch.nn import functional as F

from masklab.objectives.term import Term
from masklab.sparse.targets import kl_to_sparse


class Mlsm(Term):
    """KL(L1-normalised sparse code || student's softmax over the k latent logits)."""

    def loss(self, batch, output, teacher):
        indices, values = teacher.codes(batch)
        return kl_to_sparse(indices, values, F.log_softmax(output.latent.float(), -1))

    def uniform(self, vocab_size, atoms):
        return math.log(atoms)  # KL(p || uniform) is at most the logarithm of the size
