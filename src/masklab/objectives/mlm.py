"""Masked language modelling (Devlin et al. 2019; Berend 2023, section 2.1)."""

from masklab.objectives.term import Term


class Mlm(Term):
    """Cross-entropy of the hidden token over the vocabulary: what a term does as it stands."""
