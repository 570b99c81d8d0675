"""An encoder with a fresh classification head."""

import torch
import torch.nn.functional as F
from torch import nn

from masklab.models.dropout import dropout
from masklab.probes.headed import Headed


def activation_of(encoder) -> str:
    """What an encoder's own classifiers have: tanh with absolute positions (BERT), gelu with others (DeBERTa).

    Of one that was made elsewhere its architecture decides.
    """
    return "gelu" if getattr(encoder, "gelu", encoder.config.positions != "absolute") else "tanh"


class Classifier(Headed):
    """Encoder and classification head, as DebertaForSequenceClassification / BertForSequenceClassification.

    Dense, activation, dropout, linear. pooling: what the first reads: `cls`, the last hidden state of [CLS] (as there),
    or `mean`, the mean of the last hidden states of all tokens of the sequence, special ones included and padding left
    out. activation: tanh or gelu; None: as `activation_of` says.
    """

    HEAD = ("dense", "classifier")

    def __init__(self, encoder, classes: int, pooling: str = "cls", activation: str | None = None):
        super().__init__(encoder)
        width, self.pooling = encoder.config.hidden, pooling
        self.dense = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)
        self.activation = {"gelu": F.gelu, "tanh": torch.tanh}[activation or activation_of(encoder)]

    def forward(self, ids, lengths):
        """Logits [B, classes] of padded ids [B, T]; lengths [B]."""
        pooled = self.activation(self.dense(self.pool(ids, lengths)))
        return self.classifier(dropout(pooled, self.encoder.config.dropout, self.training))

    def pool(self, ids, lengths):
        """What the head reads of each sequence, [B, H]."""
        if self.pooling == "cls":
            first = torch.arange(ids.shape[0], device=ids.device) * ids.shape[1]
            return self.encoder.encode(ids, lengths, at=first)
        states = self.encoder.encode(ids, lengths)
        within = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        weights = (within / lengths[:, None]).to(states.dtype)
        return torch.bmm(weights[:, None], states)[:, 0]
