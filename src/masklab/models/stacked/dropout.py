"""Dropout of several copies, each drawn as `models.dropout` draws it for one model alone."""

import torch

from masklab.kernels.bits import BEHIND, Keep, draw_seeded
from masklab.models.dropout import scaled_keep


def sites(config, size: int, length: int, first: bool) -> list[tuple]:
    """Shapes of the dropout of one copy in the order in which a `MaskedLM` draws them: B rows of T tokens.

    Embeddings [B, T, H]; per block, where positions are disentangled, embeddings of distances [2 T - 1, H];
    attention weights [n, B, queries, max(T, 16)], output and feed-forward [B, queries, H], with one query in the
    last block where only the first position is asked for (`first`).
    """
    shapes = [(size, length, config.hidden)]
    for layer in range(config.layers):
        queries = 1 if first and layer == config.layers - 1 else length
        state = (size, queries, config.hidden)
        if config.positions == "disentangled":
            shapes.append((2 * length - 1, config.hidden))
        shapes += [(config.heads, size, queries, max(length, 16)), state, state]
    return shapes


def masked_sites(config, size: int, length: int, queries: int, tokens: int) -> list[tuple]:
    """The same of a model that is asked for `tokens` masked tokens, by `queries` of each row in the last block."""
    shapes = sites(config, size, length, False)
    return [*shapes[:-3], (config.heads, size, queries, max(length, 16)), *[(1, tokens, config.hidden)] * 2]


def keeps(seeds, shapes, p: float, whole=None) -> list[Keep]:
    """What dropout keeps, [S, ...], one per site: all but a share p (rounded to a multiple of 2^-16).

    seeds: S seeds; shapes: per copy, its sites' shapes; whole: those of all copies, None: the largest. A copy's own
    lies in the first places of every axis, one of two axes (distances) in the middle of the first; the rest is dropped.
    The numbers of a copy are those that `models.dropout` draws after `torch.manual_seed(seed)`, whatever the others.
    """
    sizes = [[(torch.Size(shape).numel() + 3) // 4 for shape in own] for own in shapes]
    words = torch.empty(len(seeds), max(map(sum, sizes)) + BEHIND // 4, dtype=torch.int64)
    for row, seed, own in zip(words, seeds, sizes, strict=True):
        draw_seeded(seed, row[: sum(own)])
    bits = words.view(torch.int16)
    whole = whole or [tuple(map(max, zip(*site, strict=True))) for site in zip(*shapes, strict=True)]
    found = []
    for site, shape in enumerate(whole):
        places = [(own[site], sum(counts[:site]) * 4) for own, counts in zip(shapes, sizes, strict=True)]
        if all(place == (shape, places[0][1]) for place in places):
            start = places[0][1]
            found.append(Keep(bits[:, start : start + torch.Size(shape).numel()].unflatten(1, shape), p))
            continue
        numbers = len(seeds) * torch.Size(shape).numel()
        room = torch.full((numbers + BEHIND,), torch.iinfo(torch.int16).min, dtype=torch.int16)
        room = room[:numbers].view(len(seeds), *shape)
        for copy, (own, start) in enumerate(places):
            first = (shape[0] - own[0]) // 2 if len(shape) == 2 else 0
            place = room[(copy, slice(first, first + own[0]), *map(slice, own[1:]))]
            place.copy_(bits[copy, start : start + torch.Size(own).numel()].view(own))
        found.append(Keep(room, p))
    return found


def mask(keep: Keep | None) -> torch.Tensor | None:
    """0 where a number is dropped, else 1 / (1 - p)."""
    return None if keep is None else scaled_keep(keep.bits, keep.p)
