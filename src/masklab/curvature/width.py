"""How squared gradients change when a model is seen as one k times as wide that computes the same function.

Width replication (Liu et al. 2023, appendix B.1.2; `masklab.models.grow`) writes every feature k times. A squared
gradient, summed over a parameter, becomes k^e times itself:

    matrices between features                  0   k^2 entries of gradient / k
    hidden biases, layer norms, relative       -1  k entries of gradient / k
    tied token embedding, its sum's partners   1   k entries of the same gradient: the embedding is divided by k
    untied token and position embeddings       -1  replicated as they are
    untied output matrix                       1
    output bias                                0
"""

EXPONENTS = (-1, 0, 1)


def exponent(name: str, dim: int, tied: bool) -> int:
    """e of the parameter `name` of a `MaskedLM` with `dim` axes; `tied`: the output matrix is the embedding."""
    if name.startswith("embeddings.") and not name.startswith("embeddings.norm."):
        return 1 if tied else -1
    if name in ("head.bias", "head.weight"):
        return 0 if name == "head.bias" else 1
    if name == "relative":
        return -1
    return 0 if dim == 2 else -1


def embedded(parts, factor: float):
    """Sum over the last axis [..., 3] of `parts` by EXPONENTS, each times factor ** its exponent."""
    return sum(parts[..., i] * factor**e for i, e in enumerate(EXPONENTS))
