"""A causal language model over few of its tokens: renormalised over these, it gives a law of sentences.

Word i of a sentence is drawn from Pr(x_i | x_<i), the model's distribution over the words and perhaps an end of the
sentence, renormalised. Sentences of `length` words end there.
"""

from dataclasses import dataclass

import torch

from masklab.inside_torch import shallow_copy


@dataclass(frozen=True)
class Rules:
    """What a sentence is.

    ids: the tokens that are words; symbol s is ids[s]. start: token before the first word. end: token that ends a
    sentence and is no word of it, drawn from `shortest` words on. last: symbol that ends a sentence as its last word,
    drawn from word `shortest` on. At most one of end and last; without both all sentences have `length` words.
    """

    ids: tuple[int, ...]
    start: int
    end: int | None
    last: int | None
    length: int
    shortest: int
    temperature: float

    @property
    def words(self) -> int:
        return len(self.ids)


class Restricted:
    """Any Hugging Face causal model whose output matrix is cut to the rows of the words, and the end after them."""

    def __init__(self, causal, rules: Rules):
        self.rules, self.model = rules, shallow_copy(causal)  # the caller's model keeps its own head
        head = causal.get_output_embeddings()
        rows = torch.tensor([*rules.ids, *([rules.end] if rules.end is not None else [])], device=head.weight.device)
        cut = torch.nn.Linear(head.weight.shape[1], len(rows), bias=getattr(head, "bias", None) is not None)
        cut = cut.to(head.weight)
        with torch.no_grad():
            cut.weight.copy_(head.weight[rows])
            if cut.bias is not None:
                cut.bias.copy_(head.bias[rows])
        self.model.set_output_embeddings(cut)
        self.device, self.ids = head.weight.device, rows[: rules.words]

    def __call__(self, tokens, past=None):
        """(logits [N, S, words (+ 1)], cache) of token ids [N, S] that follow what `past` holds."""
        out = self.model(input_ids=tokens, past_key_values=past, use_cache=True)
        return out.logits, out.past_key_values

    def log_probs(self, logits, first: int):
        """log Pr(x_i = . | x_<i) of logits [..., S, words (+ 1)] for the words i = first, first + 1, ... (from 0).

        What the rules forbid at a word is -inf.
        """
        rules = self.rules
        logits = logits / rules.temperature
        column, barred = (rules.words, rules.shortest) if rules.end is not None else (rules.last, rules.shortest - 1)
        if column is not None and barred > first:
            logits = logits.clone()
            logits[..., : barred - first, column] = -torch.inf
        return torch.log_softmax(logits, -1)
