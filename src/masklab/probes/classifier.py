"""An encoder with a fresh classification head."""

import torch
import torch.nn.functional as F
from torch import nn

from masklab.models.dropout import dropout


class Classifier(nn.Module):
    """Encoder and classification head, as DebertaForSequenceClassification / BertForSequenceClassification.

    Absolute positions (BERT): dense-tanh pooler; disentangled (DeBERTa): dense-gelu. Then dropout, linear.
    pooling: what the pooler reads: `cls`, the last hidden state of [CLS] (as there), or `mean`, the mean of the
    last hidden states of all tokens of the sequence, special ones included and padding left out.
    """

    def __init__(self, encoder, classes: int, pooling: str = "cls"):
        super().__init__()
        width = encoder.config.hidden
        self.encoder, self.pooling = encoder, pooling
        self.dense = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)
        # one that was made elsewhere says what its own classifiers have
        gelu = getattr(encoder, "gelu", encoder.config.positions != "absolute")
        self.activation = F.gelu if gelu else torch.tanh

    def used_parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter but those of heads and decoder of the language model, by name."""
        unused = ("encoder.head.", "encoder.latent.", "encoder.decoder.")
        return {name: parameter for name, parameter in self.named_parameters() if not name.startswith(unused)}

    def reset_head(self, generator) -> None:
        """Draw the head anew: weights normal(0, init_range), biases 0."""
        with torch.no_grad():
            for layer in (self.dense, self.classifier):
                drawn = torch.empty(layer.weight.shape).normal_(0, self.encoder.config.init_range, generator=generator)
                layer.weight.copy_(drawn)
                layer.bias.zero_()

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
