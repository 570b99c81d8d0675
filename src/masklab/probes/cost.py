"""What a checkpoint cost: seconds, tokens and FLOPs of its pre-training up to there (Figure 3 of Meng et al. 2024).

Rows: task = the corpus, split "train", n = updates; metrics `seconds` (as measured, whatever else the machine did),
`tokens` (read by the model before any leave the encoder) and `flops` (of the model's matrix products, forward and
backward: the share of the whole run's, which its manifest says, that these tokens are). And what was had for it, split
"valid": `valid_loss`, the cross-entropy of tokens hidden as in training, in nats per token, whatever the objective.
"""

import math
import re
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.models.companions import of_recipe


def measure(context) -> list[dict]:
    """Score rows of one checkpoint; see the module."""
    folder = Path(context.checkpoint)
    if not re.fullmatch(r"step-\d+", folder.name):
        raise MaskLabError(f"{folder.name}: no folder step-<n> of a run; what a checkpoint cost is known of no other")
    step = int(folder.name.removeprefix("step-"))
    rows = read_table(folder.parent / "metrics.parquet").to_pylist()
    upto = [row for row in rows if row["step"] <= step]
    if step and (not upto or upto[-1]["step"] != step):
        raise MaskLabError(f"{folder.parent / 'metrics.parquet'}: no row of step {step}")
    facts = read_json(folder.parent / "manifest.json")["facts"]
    tokens = math.fsum(count for row in upto if not math.isnan(count := row["tokens"])) if step else 0.0
    flops = tokens * facts["flops"] / facts["tokens"] if tokens else 0.0
    # where its tokens are not at hand, its own record says of which corpus it is
    corpus = context.corpus if context.tokens is not None else of_recipe(folder, "corpus")
    shared = {"task": corpus, "split": "train", "n": step}
    values = {"seconds": upto[-1]["seconds"] if step else 0.0, "tokens": tokens, "flops": flops}
    found = [{**shared, "metric": metric, "value": value} for metric, value in values.items()]
    if upto and not math.isnan(loss := upto[-1]["valid_loss"]):
        found.append({**shared, "split": "valid", "metric": "valid_loss", "value": loss})
    return found
