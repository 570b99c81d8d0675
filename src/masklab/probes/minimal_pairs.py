"""Minimal pairs scored by pseudo-log-likelihood (Salazar et al. 2020, as BabyLM 2023 uses it).

Each token of a sentence but [CLS] and [SEP] is masked on its own; the score is
the sum of log p(original token), not normalised by length. A pair is right when
the good sentence scores higher. Of a network, two sentences with equal ids (the
differing word unknown to the tokenizer) count as right: the published pipeline takes
the argmax of (good, bad). Any other tie counts as 1/2, as a guess would: to an encoder
without positions, and to words without a network, whose score is the sum of the
tokens' log unigram probabilities, sentences that differ in order alone are one. What
cannot be told apart is scored once, so that a tie never hangs on rounding.

Where a task says what is `given` (EWoK, entity tracking), the tokens of that text are read and not scored: a token
counts if its characters reach beyond it. Where an item has several bad sentences it is right if the good one scores
higher than each of them; guessing is then right in one of so many options, which the rows `majority` say.

Two accuracies, each with its outcomes pair by pair: with the softmax over the
vocabulary, which is the score as defined, and over vocabulary plus latent logits
("full width"), which is what the paper's exported models were scored with.
"""

import math

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.files import read_table
from masklab.models.checkpoint import load_checkpoint
from masklab.models.stacked import encoding_by_hand
from masklab.models.words import is_words, load_words
from masklab.probes.outcomes import of_items
from masklab.tasks.encoding import content_ends, content_ids
from masklab.tokenizers import CLS, MASK, SEP, load_tokenizer


def pseudo_log_likelihood(
    model, tokenizer, sentences, batch_tokens=16384, full_width=False, device="cpu", given=None
) -> np.ndarray:
    """Sum of log p(token | the other tokens) of each sentence, in nats, [n] float64.

    given: for each sentence the text that it begins with and that is not scored; None: all of each is.
    full_width: normalise over vocabulary and latent logits together. A sentence longer than the
    model's positions raises MaskLabError: cut, its two versions could become equal.
    """
    sentences = list(sentences)
    return of_ids(model, scored_ids(tokenizer, sentences, given), sentences, batch_tokens, full_width, device)


def of_ids(model, rows, sentences, batch_tokens=16384, full_width=False, device="cpu") -> np.ndarray:
    """`pseudo_log_likelihood` of sentences whose `scored_ids` are at hand."""
    return _scores(model, rows, sentences, batch_tokens, device)[int(full_width)]


def measure(context) -> list[dict]:
    """Accuracy per phenomenon of every pair task; rows `accuracy` and `accuracy_full_width`, and their items.

    Where pairs have an `item`, rows `majority` too: what guessing scores, the mean of 1 / options.
    """
    tokenizer = load_tokenizer(context.checkpoint)
    pairs, places = [], {}  # rows of the files; a phenomenon's pairs by number, in order of appearance
    for name in context.tasks:
        folder, _ = context.task(name, "pairs")
        for row in read_table(folder / "test.parquet").to_pylist():
            places.setdefault(f"{name}/{row['phenomenon']}", []).append(len(pairs))
            pairs.append(row)
    sentences = [pair[kind] for kind in ("good", "bad") for pair in pairs]
    ids = scored_ids(tokenizer, sentences, [pair.get("given", "") for pair in pairs] * 2)
    same = np.zeros(len(pairs), bool)
    if is_words(context.checkpoint):
        scores = np.tile(unigram_scores(load_words(context.checkpoint), ids), (2, 1))
    else:
        same[:] = [one == other for one, other in zip(ids[: len(pairs)], ids[len(pairs) :], strict=True)]
        model = encoding_by_hand(load_checkpoint(context.checkpoint, context.device))
        read = ids if _orders(model.config) else [_bag(*row) for row in ids]
        scores = _scores(model, read, sentences, context.probe.batch_tokens, context.device, context.progress)
    good, bad = np.split(scores, 2, axis=1)
    outcomes = (good > bad) + np.where(same, 1.0, 0.5) * (good == bad)
    rows = []
    for metric, right in zip(("accuracy", "accuracy_full_width"), outcomes, strict=True):
        for task, group in places.items():
            rows += of_items(_of_items(right[group], [pairs[at] for at in group]), metric, task=task, split="test")
    for task, group in places.items():
        if "item" in pairs[group[0]]:
            chance = 1 / (1 + np.diff(_bounds([pairs[at] for at in group])))
            n = len(chance)
            rows.append({"task": task, "split": "test", "metric": "majority", "value": float(chance.mean()), "n": n})
    return rows


def _orders(config) -> bool:
    """Whether an encoder can tell a sentence from its words in another order."""
    return config.kind != "transformer" or config.positions != "none"


def _bag(first: int, ids: list[int]) -> tuple[int, list[int]]:
    """A sentence as such an encoder reads it: what is scored and what is not, each in one order."""
    return first, sorted(ids[:first]) + sorted(ids[first:])


def _of_items(right, pairs):
    """Whether each item is right: all of its pairs are. Pairs without a number are an item each.

    A pair that counts as 1/2 is a tie: an item whose good sentence ties with m others, none better, is 1 / (m + 1).
    """
    if "item" not in pairs[0]:
        return right
    right, first = np.asarray(right, float), _bounds(pairs)[:-1]
    best, tied = np.minimum.reduceat(right, first), np.add.reduceat((right == 0.5).astype(float), first)
    return np.where(best > 0, 1 / (1 + tied), 0.0)


def _bounds(pairs) -> np.ndarray:
    """Where the pairs of each item begin, which stand together, and where the last of them ends, [items + 1]."""
    _, first = np.unique([pair["item"] for pair in pairs], return_index=True)
    return np.append(np.sort(first), len(pairs))


def scored_ids(tokenizer, sentences, given=None) -> list[tuple[int, list[int]]]:
    """(number of the first token that is scored, ids without [CLS] and [SEP]) of each sentence.

    given: for each sentence the text that it begins with; tokens that end within it are not scored. None: none is.
    """
    rows = content_ids(tokenizer, sentences)
    firsts = [0] * len(rows)
    partly = [at for at, text in enumerate(given or ()) if text]
    for at, ends in zip(partly, content_ends(tokenizer, [sentences[at] for at in partly]), strict=True):
        firsts[at] = next((number for number, end in enumerate(ends) if end > len(given[at])), len(ends))
    return list(zip(firsts, rows, strict=True))


def unigram_scores(words, rows) -> np.ndarray:
    """Sum of the log probabilities of each sentence's scored tokens, whatever stands around them, in nats, [n] float64.

    rows: of `scored_ids`. Exactly equal for the same tokens in another order, or for others that are as frequent.
    """
    logs = words.logs
    return np.array([math.fsum(logs[ids[first:]]) for first, ids in rows])


def _scores(model, rows, sentences, batch_tokens, device, progress=None) -> np.ndarray:
    """Scores [2, n] of `scored_ids`: softmax over the vocabulary, and over vocabulary plus latent logits."""
    unique: dict[tuple, int] = {}
    place = np.array([unique.setdefault((first, *ids), len(unique)) for first, ids in rows], dtype=np.int64)
    longest = max(map(len, unique), default=1) + 1
    if longest > model.config.max_positions:
        text = sentences[next(i for i, (_, ids) in enumerate(rows) if len(ids) == longest - 2)]
        raise MaskLabError(
            f"{text[:40]!r}... has {longest} tokens; the model takes {model.config.max_positions} (`max_positions` of"
            " its encoder)"
        )
    by_length: dict[int, list] = {}
    for (first, *ids), index in unique.items():
        if first < len(ids):
            by_length.setdefault(len(ids), []).append((index, first, ids))
    scores = np.zeros((2, len(unique)))
    done, total = 0, sum(length * len(group) for length, group in by_length.items())
    model.eval()
    for length, group in sorted(by_length.items(), reverse=True):
        index, first, ids = (np.array(part) for part in zip(*group, strict=True))
        scores[:, index] = _score_equal_length(model, ids, first, batch_tokens, device)
        done += length * len(group)
        if progress:
            progress(done, total)
    return scores[:, place]


def _score_equal_length(model, ids, scored, batch_tokens, device) -> np.ndarray:
    """Scores [2, S] of `ids` [S, L], no padding, from token `scored` [S] on.

    Equal masked copies (of a pair's two versions) run once.
    """
    length = ids.shape[1]
    sentence, place = np.nonzero(np.arange(length) >= scored[:, None])
    copies = ids[sentence].astype(np.int32)
    copies[np.arange(len(copies)), place] = MASK
    # The masked column belongs to the key: a text may hold a [MASK] of its own.
    keys = np.column_stack([place.astype(np.int32), copies])
    keys = keys.view(np.dtype((np.void, keys.itemsize * (length + 1)))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")  # copies, grouped by the masked input they share
    bounds = np.searchsorted(inverse[order], np.arange(len(first) + 1))
    target = ids[sentence, place]
    logp = np.zeros((2, len(copies)))
    # At least 8 tokens a row in the budget: very short rows would fill memory with logits instead.
    rows = max(1, batch_tokens // max(8, length + 2))
    for start in range(0, len(first), rows):
        stop = min(start + rows, len(first))
        batch = np.full((stop - start, length + 2), CLS)
        batch[:, 1:-1], batch[:, -1] = copies[first[start:stop]], SEP
        members = order[bounds[start] : bounds[stop]]
        column = 1 + place[first[start:stop]]
        vocabulary, full = _log_probabilities(model, batch, column, inverse[members] - start, target[members], device)
        logp[0, members], logp[1, members] = vocabulary, full
    # every sentence has a token that is scored; its copies stand together
    return np.add.reduceat(logp, np.flatnonzero(np.diff(sentence, prepend=-1)), axis=1)


@torch.inference_mode()
def _log_probabilities(model, batch, column, row, token, device):
    """log p(token) at the masked column of `batch[row]`, over the vocabulary and over the full width."""
    count, width = batch.shape
    ids = torch.as_tensor(batch, device=device)
    at = torch.as_tensor(np.arange(count) * width + column, device=device)
    output = model(ids, torch.full((count,), width, device=device), at=at)
    logits = output.logits.float()
    row, token = torch.as_tensor(row, device=device), torch.as_tensor(token, device=device)
    chosen = logits[row, token]
    normaliser = _log_sums(logits)
    vocabulary = (chosen - normaliser[row]).double().cpu().numpy()
    if output.latent is None:
        return vocabulary, vocabulary
    wide = torch.logaddexp(normaliser, output.latent.float().logsumexp(-1))
    return vocabulary, (chosen - wide[row]).double().cpu().numpy()


def _log_sums(logits):
    """The logarithms of the sums of exponentials of every row of logits [N, V], [N]."""
    if logits.device.type != "cpu":
        return logits.logsumexp(-1)
    from masklab.kernels.token_loss import log_sums  # numba takes half a second

    return log_sums(logits.contiguous())
