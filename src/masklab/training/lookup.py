"""The pre-training run of a lookup table: nothing is trained, the law of the corpus is the model."""

from masklab.errors import MaskLabError
from masklab.files import read_json, sha256, write_json
from masklab.models.lookup import FACTS, save_lookup
from masklab.training.metrics import MetricsFile
from masklab.training.run import Run


def write_lookup(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`.

    Raises:
        MaskLabError: the corpus has no facts of a law.
    """
    facts = read_json(run.tokens / "meta.json").get("corpus")
    if facts is None:
        raise MaskLabError(f"{run.name}: a lookup table needs a corpus whose law is known; {run.tokens} has none")
    finish(run, FACTS, lambda folder, **parts: save_lookup(folder, facts, **parts))


def finish(run: Run, file: str, save) -> None:
    """Write the only checkpoint of a model without weights by `save(folder, tokenizer_folder=, metadata=)`.

    file: what the checkpoint folder holds in the place of weights; its hash stands in the manifest.
    """
    resolved = {
        "seed": run.seed,
        "model": run.model.model_dump(mode="json"),
        "encoder": run.encoder.model_dump(mode="json"),
        "objective": run.objective.model_dump(mode="json"),
        "dictionary": None,
    }
    folder = run.output / "step-0"
    save(folder, tokenizer_folder=run.tokenizer, metadata={"model": run.name, "step": 0, "config": resolved})
    metrics = MetricsFile(run.output / "metrics.parquet")
    metrics.append({"step": 0, "seconds": 0.0, "valid_mlm": float("nan")})
    metrics.write()
    write_json({"model": run.name, "steps": {"0": sha256(folder / file)}, "config": resolved},
               run.output / "manifest.json")  # fmt: skip
