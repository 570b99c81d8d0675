"""Compile ahead what numba would else compile in the first jobs of a checkout, in several of them at once.

`make setup` runs `python -m masklab.compile_ahead`. Inputs as small as can be, of the types that jobs have, go
through what is compiled for grammars, for sparse codes and for training; numba keeps the machine code beside the
source. What is not covered here, or has changed since, is compiled by the first job that needs it.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def grammars() -> None:
    """Sentences, conditionals and scores of spans."""
    from masklab.config.schema import Grammar
    from masklab.corpora.pcfg.law import Law
    from masklab.corpora.pcfg.rules import draw_rules
    from masklab.corpora.pcfg.sample import sample
    from masklab.corpora.pcfg.span_scores import span_scores

    rules = draw_rules(Grammar(levels=[2, 2], words=6, rules=2, emissions=3, stop=0.0, label_spans=[]), 1)
    sequences, lengths = sample(rules, 20, 1)
    law = Law(rules)
    law.conditionals(sequences, lengths)
    law.conditionals_at(sequences, lengths, [0, 1], [0, 0])
    for reading in ("inside", "outside"):
        span_scores(law, sequences, lengths, 1, reading)


def sparse_codes() -> None:
    """Codes and an update of a dictionary."""
    import torch

    from masklab.sparse.dictionary import learn

    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    learn(torch.nn.functional.normalize(x), atoms=16, penalty=0.1, iterations=2, batch_size=32)


def training() -> None:
    """Products of matrices and what lies between them: kernels are compiled when they are imported."""
    import torch

    from masklab.kernels import (
        adamw,
        attend,
        bits,
        distance_bias,
        embed,
        matmul,
        recurrent,
        rowwise,
        token_divergence,
        token_loss,
    )

    del adamw, attend, distance_bias, embed, matmul, recurrent, rowwise, token_divergence, token_loss
    bits.draw_seeded(1, torch.empty(1, dtype=torch.int64))


def main() -> int:
    """Compile all, in a process for each part; 1 if something went wrong, which no job minds."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        done = [pool.submit(part) for part in (training, grammars, sparse_codes)]
    failed = [str(each.exception()) for each in done if each.exception()]
    for said in failed:
        sys.stderr.write(f"masklab: not compiled ahead: {said}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
