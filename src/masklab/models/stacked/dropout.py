"""Dropout masks of several copies, each drawn as `models.dropout` draws it for one model alone."""

import torch

from masklab.models.dropout import scaled_keep


def sites(config, size: int, length: int, first: bool) -> list[tuple]:
    """Shapes of the masks of one copy in the order in which a `MaskedLM` draws them: B rows of T tokens.

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


def keep_masks(seeds, shapes, p: float, whole=None) -> list[torch.Tensor]:
    """Masks [S, ...], one per site: 0 with probability p (rounded to a multiple of 2^-16), else 1 / (1 - p).

    seeds: S seeds; shapes: per copy, its sites' shapes; whole: those of the masks, None: the largest. A copy's own lies
    in the first places of every axis, one of two axes (distances) in the middle of the first, among zeros. The numbers
    of a copy are those that `models.dropout.keep_mask` draws after `torch.manual_seed(seed)`, whatever the others are.
    """
    sizes = [[(torch.Size(shape).numel() + 3) // 4 for shape in own] for own in shapes]
    bits = torch.empty(len(seeds), max(map(sum, sizes)), dtype=torch.int64)
    for row, seed, own in zip(bits, seeds, sizes, strict=True):
        row[: sum(own)].random_(-(2**63), None, generator=torch.Generator().manual_seed(seed))
    keep = scaled_keep(bits.view(torch.int16), p)
    whole = whole or [tuple(map(max, zip(*site, strict=True))) for site in zip(*shapes, strict=True)]
    masks = []
    for site, shape in enumerate(whole):
        places = [(own[site], sum(counts[:site]) * 4) for own, counts in zip(shapes, sizes, strict=True)]
        if all(place == (shape, places[0][1]) for place in places):
            start = places[0][1]
            masks.append(keep[:, start : start + torch.Size(shape).numel()].unflatten(1, shape))
            continue
        masks.append(torch.zeros(len(seeds), *shape))
        for copy, (own, start) in enumerate(places):
            first = (shape[0] - own[0]) // 2 if len(shape) == 2 else 0
            place = masks[-1][(copy, slice(first, first + own[0]), *map(slice, own[1:]))]
            place.copy_(keep[copy, start : start + torch.Size(own).numel()].view(own))
    return masks
