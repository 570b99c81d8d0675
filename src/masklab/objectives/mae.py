"""The masked autoencoder for text, MAE-LM (Meng et al. 2024, section 4.3)."""

import numpy as np

from masklab.masking import leaving
from masklab.objectives.term import Term


class Mae(Term):
    """Cross-entropy of the hidden token, as MLM's: what differs is what the encoder is shown.

    `batch.extra`: `dropped` [D], flat positions that leave the encoder; `reset` [R], where asked for, those that the
    decoder sees as [MASK] although they stay; `width`, the most tokens that a row keeps. Without a decoder nothing
    leaves, and the term is `mlm`.
    """

    decoder = None

    def prepare(self, setup):
        self.decoder = setup.encoder.decoder

    def corrupt(self, ids, lengths, masking, vocab_size, rng):
        corrupted, rows, columns = super().corrupt(ids, lengths, masking, vocab_size, rng)
        if self.decoder is None:
            return corrupted, rows, columns
        gone = leaving(corrupted[rows, columns], rows, self.settings.delta, rng)
        extra = {"dropped": (rows[gone], columns[gone])}
        if self.settings.reset:
            extra["reset"] = rows[~gone], columns[~gone]
        if self.decoder.attention == "causal+cross":  # it predicts every token
            rows, columns = (np.arange(ids.shape[1]) < lengths[:, None]).nonzero()
        return corrupted, rows, columns, extra

    def arrange(self, batch):
        if self.decoder is not None:
            dropped = np.bincount(batch.extra["dropped"].numpy() // batch.ids.shape[1], minlength=len(batch.ids))
            batch.extra["width"] = max(1, int((batch.lengths.numpy() - dropped).max()))

    def forward(self, model, batch):
        if self.decoder is None:
            return super().forward(model, batch)
        shown = {"dropped": batch.extra["dropped"], "reset": batch.extra.get("reset"), "width": batch.extra["width"]}
        how = {"at": batch.at, "aligned": self.settings.aligned, "original": batch.original}
        return model.reconstruct(batch.ids, batch.lengths, **how, **shown)
