"""The pre-training run of a lookup table: nothing is trained, the law of the corpus is the model."""

from masklab.errors import MaskLabError
from masklab.files import read_json, sha256, write_json
from masklab.models.lookup import FACTS, save_lookup
from masklab.training.facts import facts
from masklab.training.metrics import MetricsFile
from masklab.training.run import Run


def write_lookup(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`.

    Raises:
        MaskLabError: the corpus has no facts of a law.
    """
    meta = read_json(run.tokens / "meta.json")
    law = meta.get("corpus")
    if law is None:
        raise MaskLabError(f"{run.name}: a lookup table needs a corpus whose law is known; {run.tokens} has none")
    folder, resolved = run.output / "step-0", run.resolved()
    metadata = {"model": run.name, "step": 0, "config": resolved}
    save_lookup(folder, law, tokenizer_folder=run.tokenizer, metadata=metadata)
    metrics = MetricsFile(run.output / "metrics.parquet")
    metrics.append({"step": 0, "seconds": 0.0, "valid_loss": float("nan")})
    metrics.write()
    made = facts(run, meta["vocab_size"], 0, metrics.rows, None, None)
    manifest = {"model": run.name, "steps": {"0": sha256(folder / FACTS)}, "facts": made, "config": resolved}
    write_json(manifest, run.output / "manifest.json")
