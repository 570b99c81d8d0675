"""Words and hidden states to look at: of token arrays and one of our models, or of a text and any encoder."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from masklab import rng
from masklab.errors import MaskLabError
from masklab.lines import read_texts
from masklab.probes.folder import BATCH_TOKENS, in_batches, reader_of
from masklab.properties.coded_words import with_marks, words_of_pieces, words_of_text
from masklab.sparse.lasso import unit_rows
from masklab.sparse.looked import TOKENS
from masklab.sparse.states import hidden_states
from masklab.tasks.encoding import fitting

LENGTH = 512  # tokens that lines are cut to, or fewer where the encoder reads fewer
CHUNK = 128  # lines read together


def of_arrays(model, store, tokenizer, layer: int, tokens: int = TOKENS, seed: int = 1):
    """(words of each sequence, unit states of all their tokens [n, d]) of sequences drawn from a `TokenStore`."""
    rows = rng.generator(seed, "properties", "sample").permutation(len(store))
    inner = store.lengths[rows].astype(np.int64) - 2
    rows = rows[inner > 0]
    rows = np.sort(rows[: int(np.searchsorted(np.cumsum(inner[inner > 0]), tokens)) + 1])
    pieces, marked = with_marks([tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())])
    words, begin = [], np.zeros(len(store) + 1, np.int64)
    for row in rows:
        first, last = int(store.offsets[row]), int(store.offsets[row + 1])
        words.append(words_of_pieces([pieces[token] for token in store.ids[first:last]], marked))
        begin[row + 1] = last - first
    begin = begin.cumsum()
    if not words:
        raise MaskLabError("the corpus has no tokens")
    states = None
    for positions, part in hidden_states(model, store, rows, layer):
        row = np.searchsorted(store.offsets, positions, "right") - 1
        if states is None:
            states = torch.empty(int(begin[-1]), part.shape[1])
        states[torch.from_numpy(begin[row] + positions - store.offsets[row])] = part.cpu()
    return words, states


def of_text(
    folder,
    text,
    layer: int | None,
    tokens: int = TOKENS,
    device="cpu",
    progress=None,
    untrained: bool = False,
):
    """(words of each line, unit states of all their tokens [n, d], layer) of the first `tokens` tokens of a file.

    folder: a Hugging Face folder of an encoder, made here or elsewhere. layer: None: the last one.
    untrained: the states are those of the same architecture with initial weights.

    Raises:
        MaskLabError: what cannot be read, a layer that the encoder does not have, a text without lines.
    """
    reader = reader_of(folder, LENGTH, device, untrained)
    words, parts, done, used = [], [], 0, layer
    for chunk in _chunks(text):
        rows = _rows(reader, chunk, tokens - done)
        for batch in in_batches(rows, fitting(BATCH_TOKENS, device), length=lambda row: len(row[0])):
            states, used = _states(folder, reader, [ids for ids, _, _ in batch], layer)
            for (_, said, kept), own in zip(batch, states, strict=True):
                words.append(said)
                parts.append(own[torch.from_numpy(kept)])
                done += len(said.of)
            if progress:
                progress(done, tokens)
        if done == tokens:
            break
    if not parts:
        raise MaskLabError(f"{text}: no text")
    return words, torch.cat(parts), used


def _rows(reader, lines, most: int) -> list:
    """(ids, words, which tokens are kept [inner tokens] bool) of the lines that hold the first `most` kept tokens."""
    rows = []
    for (ids, spans), line in zip(reader.spans(lines), lines, strict=True):
        said, kept = words_of_text(line, spans[1 : len(ids) - 1])
        kept &= kept.cumsum() <= most
        if kept.any():
            said = replace(said, of=said.of[: kept.sum()])
            rows.append((ids, said, kept))
            most -= len(said.of)
    return rows


def _chunks(path):
    chunk = []
    for line in read_texts(path):
        chunk.append(line.strip())
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@torch.no_grad()
def _states(folder, reader, rows, layer) -> tuple[list[Tensor], int]:
    """Unit states of one layer at the inner tokens of each row, and which layer."""
    ids, lengths = reader.padded(rows)
    number, states = 0, None
    for number, states in enumerate(reader.states(ids, lengths)):  # noqa: B007
        if number == layer:
            break
    if layer is not None and number != layer:
        raise MaskLabError(f"{folder}: no layer {layer}; it has 0 (the embeddings) to {number}")
    states = unit_rows(states.float().cpu()).unflatten(0, ids.shape)
    return [own[1 : len(row) - 1] for own, row in zip(states, rows, strict=True)], number
