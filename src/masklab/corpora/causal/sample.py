"""Sentences drawn from a restricted causal model, many at once, with its cache of keys and values."""

import numpy as np
import torch


@torch.inference_mode()
def sample(restricted, count: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(words [count, length] int64, zeros past the end; lengths [count] int64; log probabilities [count] float64).

    rng: a torch generator on the CPU; equal ones give equal sentences on one kind of device. Sentences that have
    ended leave the batch.
    """
    rules = restricted.rules
    words, lengths = np.zeros((count, rules.length), np.int64), np.full(count, rules.length)
    logs, active, past = np.zeros(count), np.arange(count), None
    tokens = torch.full((count, 1), rules.start, device=restricted.device)
    for at in range(rules.length):
        logits, past = restricted(tokens, past)
        log_probs = restricted.log_probs(logits[:, -1:], at)[:, 0].double()
        cumulative = log_probs.exp().cumsum(-1)
        draws = torch.rand(len(active), 1, generator=rng, dtype=torch.float64).to(restricted.device)
        drawn = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
        drawn.clamp_(max=cumulative.shape[1] - 1)
        logs[active] += log_probs.gather(1, drawn)[:, 0].cpu().numpy()
        symbols = drawn[:, 0].cpu().numpy()
        ended = symbols == rules.words  # the end token: no word
        words[active[~ended], at] = symbols[~ended]
        lengths[active[ended]] = at
        if rules.last is not None:
            ended = symbols == rules.last
            lengths[active[ended]] = at + 1
        keep = np.flatnonzero(~ended)
        if not len(keep):
            break
        if len(keep) < len(active):
            past.batch_select_indices(torch.from_numpy(keep).to(restricted.device))
        active = active[keep]
        tokens = restricted.ids[torch.from_numpy(symbols[keep]).to(restricted.device)][:, None]
    return words, lengths, logs
