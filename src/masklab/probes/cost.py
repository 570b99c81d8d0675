"""What a checkpoint cost: seconds, tokens and FLOPs of its pre-training up to there (Figure 3 of Meng et al. 2024).

Rows: task = the corpus, split "train", n = updates; metrics `seconds` (as measured, whatever else the machine did),
`tokens` (read by the model before any leave the encoder) and `flops` (of matrix products, forward and backward).
"""

import math
from pathlib import Path

import numpy as np

from masklab.config.schema import Encoder, Masking, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.masking import maskable
from masklab.models.flops import training_flops
from masklab.tokens import TokenStore


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    folder = Path(context.checkpoint)
    step = int(folder.name.removeprefix("step-"))
    rows = read_table(folder.parent / "metrics.parquet").to_pylist()
    upto = [row for row in rows if row["step"] <= step]
    if step and (not upto or upto[-1]["step"] != step):
        raise MaskLabError(f"{folder.parent / 'metrics.parquet'}: no row of step {step}")
    config = read_json(folder / "masklab.json")["config"]
    tokens = math.fsum(count for row in upto if not math.isnan(count := row["tokens"])) if step else 0.0
    lengths = TokenStore(context.tokens, "train").lengths
    each = flops_per_token(
        Encoder(**config["encoder"]),
        Objective(**config["objective"]),
        Masking(**config["model"]["masking"]),
        read_json(Path(context.tokens) / "meta.json")["vocab_size"],
        lengths,
    )
    seconds = upto[-1]["seconds"] if step else 0.0
    shared = {"task": context.corpus, "split": "train", "n": step}
    values = {"seconds": seconds, "tokens": tokens, "flops": tokens * each}
    return [{**shared, "metric": metric, "value": value} for metric, value in values.items()]


def flops_per_token(encoder, objective, masking, vocab_size: int, lengths) -> float:
    """Training FLOPs per token over sequences of `lengths` [n] tokens, each with its mean number of masks.

    Of a masked autoencoder the share of masks that leaves the encoder is 1 - delta.
    """
    found, counts = np.unique(np.asarray(lengths)[maskable(lengths, masking)], return_counts=True)
    total = 0.0
    for length, count in zip(found.tolist(), counts.tolist(), strict=True):
        masked = 1 if masking.count == "one" else max(1, round(masking.rate * length))
        options = {}
        if encoder.decoder is not None:
            options["dropped"] = round((1 - objective.autoencoder.delta) * masked * (masking.mask > 0))
            masked = length if encoder.decoder.attention == "causal+cross" else masked
        total += count * training_flops(encoder, vocab_size, 1, length, masked, **options)
    return total / float(found @ counts)
