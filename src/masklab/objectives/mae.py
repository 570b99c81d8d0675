"""The masked autoencoder for text, MAE-LM (Meng et al. 2024, section 4.3)."""

import numpy as np

from masklab.masking import hide, leaving
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

    def corrupt(self, ids, lengths, masking, vocab_size, rng, part=None):
        if self.decoder is None:
            return super().corrupt(ids, lengths, masking, vocab_size, rng, part)
        hidden = hide(lengths, int(lengths.max()), masking, vocab_size, rng, part)
        rows, columns, count = hidden.rows, hidden.columns, len(hidden.all_rows)
        gone = leaving(hidden, self.settings.delta, rng)
        extra = {"dropped": (rows[gone], columns[gone])}
        if self.settings.reset:
            extra["reset"] = rows[~gone], columns[~gone]
        if self.decoder.attention == "causal+cross":  # it predicts every token
            own, count = lengths if part is None else lengths[part], int(lengths.sum())
            rows, columns = (np.arange(ids.shape[1]) < own[:, None]).nonzero()
        found = hidden.corrupt(ids), rows, columns, extra
        return found if part is None else (*found, count)

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
