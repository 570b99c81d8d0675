"""The rank of the matrix T of Lemma 2.1 of Meng et al. (2024): log conditionals of a masked word, context by context.

A model whose logits are products of its states at [MASK] and of embeddings meets Eq. 2, states x embeddings = T + c 1',
only with states of at least rank(T + c 1') for some c. What is counted here is therefore the rank of T less the mean of
each of its rows, the least over all c but for one. (The mean of the rows, which is what is left out of states where
ranks are called centred, stays.)

A chain of words in which x follows l with probability a_l exp(u_l v_x) b_x, u and v of r numbers, has

    log p(x | l, r) = u_l v_x + u_x v_r + log a_x + log b_x + c(l, r)

within a sentence; of its first word it is u_x v_r + log a_x + c(r), of its last u_l v_x + log b_x + c(l), where all
words are as likely to come first. So the rows of T lie, but for shifts, in the span of the r columns of v, the r
columns of u, log a and log b: rank 2 r + 2 (`HiddenMarkov.log_rank`), and 2 r + 1 where both neighbours are there,
since these have log a + log b only. Of a hidden Markov model it is the matrix of the conditionals themselves whose rank
is known, that of its emissions.
"""

import numpy as np

TOLERANCE = 1e-9  # of the largest singular value, below which one counts as 0


def shifted_logs(conditionals) -> np.ndarray:
    """T without the mean of each row, [n, V], of those contexts in `conditionals` [..., V] that allow every word.

    The logarithm of 0 has no rank.
    """
    p = np.asarray(conditionals, float).reshape(-1, np.shape(conditionals)[-1])
    logs = np.log(p[(p > 0).all(1)])
    return logs - logs.mean(1, keepdims=True)


def counted_rank(matrix) -> int:
    """Singular values of a matrix [n, m] above `TOLERANCE` of the largest."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > TOLERANCE * values[0]).sum()) if len(matrix) and values[0] else 0
