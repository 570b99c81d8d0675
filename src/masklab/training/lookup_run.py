"""The pre-training run of a model without weights: of a lookup table, which is the law of its corpus, or of words."""

import numpy as np

from masklab.errors import MaskLabError
from masklab.files import read_json, sha256, write_json
from masklab.models.lookup import FACTS, save_lookup
from masklab.training.manifest import facts, loss_of, unigram_loss
from masklab.training.metrics_file import MetricsFile
from masklab.training.run import Run


def write_lookup(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`.

    Raises:
        MaskLabError: the corpus has no facts of a law.
    """
    law = read_json(run.tokens / "meta.json").get("corpus")
    if law is None:
        raise MaskLabError(f"{run.name}: a lookup table needs a corpus whose law is known; {run.tokens} has none")
    finish(run, FACTS, lambda folder, **parts: save_lookup(folder, law, **parts))


def finish(run: Run, file: str, save, probabilities: np.ndarray | None = None) -> None:
    """Write the only checkpoint of a model that is not trained by `save(folder, tokenizer_folder=, metadata=)`.

    save: returns the number of the model's parameters, None: it has none. file: what the checkpoint folder holds as
    weights, or in their place; its hash stands in the manifest. probabilities: [V], what the model predicts wherever a
    token is masked; None: no validation loss is taken.
    """
    from masklab.objectives import Setup
    from masklab.objectives.terms import Terms
    from masklab.tokens import TokenStore
    from masklab.training.validation import valid_batches

    setup = Setup(run.encoder, run.vocab_size, tokens=run.tokens, tokenizer=run.tokenizer, tasks=run.tasks)
    hidden = valid_batches(run, run.vocab_size, Terms(run.objective, setup).reader)
    targets = np.concatenate([np.empty(0, np.int64), *(batch.targets.numpy() for batch in hidden)])
    loss = None if probabilities is None else loss_of(probabilities, targets)
    folder = run.output / "step-0"
    metadata = {"model": run.name, "step": 0, "config": run.resolved()}
    parameters = save(folder, tokenizer_folder=run.tokenizer, metadata=metadata) or 0
    metrics = MetricsFile(run.output / "metrics.parquet")
    metrics.append({"step": 0, "seconds": 0.0, "valid_loss": float("nan") if loss is None else loss})
    metrics.write()
    counted = unigram_loss(TokenStore(run.tokens, "train"), run.vocab_size, targets)
    learned = facts(run, run.vocab_size, parameters, metrics.rows, None, counted)
    manifest = {"model": run.name, "steps": {"0": sha256(folder / file)}, "facts": learned, "config": run.resolved()}
    write_json(manifest, run.output / "manifest.json")
