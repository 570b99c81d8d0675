"""One vector for a sequence, from the states of its tokens."""

import torch


def pooled(states, counts, pooling: str):
    """`concat` or `mean` of the first `counts` [b] of states [b, t, d]: [b, t d], zeros past a row's end, or [b, d]."""
    within = torch.arange(states.shape[1], device=states.device) < counts[:, None]
    states = states * within[..., None]
    if pooling == "concat":
        return states.flatten(1)
    return states.sum(1) / counts.clamp(min=1)[:, None]
