"""What an encoder is trained to predict: a weighted sum of terms, each a class of `Term` in a file of its own.

To add one, derive its settings from `masklab.config.schema.Weight` and what it does from `Term`, and register both:

    @kinds.term("last", Last)
    class LastToken(Term):
        def corrupt(self, ids, lengths, masking, vocab_size, rng): ...

Importing this package imports no torch, so that a file that registers terms can be read with the config.
"""

from masklab.objectives.term import Setup, Term

__all__ = ["Setup", "Term"]
