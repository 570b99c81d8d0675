"""Dropout of several copies, each drawn as `models.dropout` draws it for one model alone."""

import itertools
import math

import torch

from masklab.kernels.bits import BEHIND, Keep, draw_seeded
from masklab.models.dropout import scaled_keep


def sites(config, size: int, length: int, first: bool) -> list[tuple]:
    """Shapes of the dropout of one copy in the order in which a `MaskedLM` draws them: B rows of T tokens.

    Embeddings [B, T, H]; per block, where positions are disentangled, embeddings of distances [2 T - 1, H];
    attention weights [n, B, queries, max(T, 16)], output and feed-forward [B, queries, H], with one query in the
    last block where only the first position is asked for (`first`). Of an LSTM's block its output alone.
    """
    shapes = [(size, length, config.hidden)]
    for layer in range(config.layers):
        queries = 1 if first and layer == config.layers - 1 else length
        state = (size, queries, config.hidden)
        if config.kind == "lstm":
            shapes.append(state)
            continue
        if config.positions == "disentangled":
            shapes.append((2 * length - 1, config.hidden))
        shapes += [(config.heads, size, queries, max(length, 16)), state, state]
    return shapes


def masked_sites(config, size: int, length: int, queries: int, tokens: int) -> list[tuple]:
    """The same of a model that is asked for `tokens` masked tokens, by `queries` of each row in the last block."""
    shapes = sites(config, size, length, False)
    if config.kind == "lstm":
        return [*shapes[:-1], (1, tokens, config.hidden)]
    return [*shapes[:-3], (config.heads, size, queries, max(length, 16)), *[(1, tokens, config.hidden)] * 2]


def keeps(seeds, shapes, p: float) -> list[Keep]:
    """What dropout keeps, one `Keep` per site: all but a share p (rounded to a multiple of 2^-16).

    seeds: S seeds; shapes: per copy, its sites' shapes. The numbers of a copy are those that `models.dropout` draws
    after `torch.manual_seed(seed)`, whatever the others are.
    """
    ends = [_ends(own) for own in shapes]
    words = torch.empty(len(seeds), max(own[-1] for own in ends) + BEHIND // 4, dtype=torch.int64)
    for row, seed, own in zip(words, seeds, ends, strict=True):
        draw_seeded(seed, row[: own[-1]])
    return _laid(words, ends, shapes, p)


def drawn(shapes, p: float) -> list[Keep]:
    """The same of one copy, from torch's default generator, as a model alone draws it."""
    ends = _ends(shapes)
    words = torch.empty(1, ends[-1] + BEHIND // 4, dtype=torch.int64)
    words[0, : ends[-1]].random_(-(2**63), None)
    return _laid(words, [ends], [shapes], p)


def _ends(shapes) -> list[int]:
    """Where the words of each site begin, and where those of the last end."""
    return list(itertools.accumulate((-(-math.prod(shape) // 4) for shape in shapes), initial=0))


def _laid(words, ends, shapes, p):
    bits, starts, sites = words.view(torch.int16), zip(*ends, strict=True), zip(*shapes, strict=True)
    return [Keep(bits, [4 * at for at in each], own, p) for each, own in zip(starts, sites, strict=False)]


def mask(keep: Keep | None, shape=None) -> torch.Tensor | None:
    """0 where a number is dropped, else 1 / (1 - p): [S, ...], as large as the largest copy's, or [S, *shape].

    A copy's own lies in the first places of every axis, one of two axes (distances) in the middle of the first; the
    rest is 0.
    """
    if keep is None:
        return None
    whole = tuple(map(max, zip(*keep.shapes, strict=True))) if shape is None else shape
    found = torch.zeros(len(keep.bits), *whole)
    for to, bits, start, own in zip(found, keep.bits, keep.starts, keep.shapes, strict=True):
        first = (whole[0] - own[0]) // 2 if len(own) == 2 else 0
        place = (slice(first, first + own[0]), *map(slice, own[1:]))
        to[place] = scaled_keep(bits[start : start + math.prod(own)], keep.p).view(own)
    return found
