"""The columns of the tables that a run ends with, in words; names and types come from their schemas.

`masklab schema` writes it as docs/columns.md; the pages of results show it too.
"""

from pathlib import Path

from masklab.claims.verdict import COLUMNS as CLAIMS
from masklab.files import atomic
from masklab.markdown import escaped
from masklab.report.cells import TIDY, TYPES
from masklab.scores.facts import COLUMNS as FACTS
from masklab.scores.schema import GATHERED

KINDS = {"str": "text", "int64": "whole number", "float64": "number", "bool": "true or false"}
SCORES_MEAN = {
    "study": "the study that asks for the score; a score that two studies ask for has a row for each",
    "recipe": "the recipe, or the null, that was measured",
    "replicate": "which of its replicates, from 1",
    "step": "the checkpoint: after so many updates",
    "probe": "the probe that measured it",
    "task": "the task; for minimal pairs `task/phenomenon`; the corpus, where no task is measured",
    "split": "the part of the task or corpus that was scored, such as `test`, or a test domain",
    "train_size": "rows that a classifier was trained or fine-tuned on; 0 where none was",
    "at": "a coordinate that no other column holds, such as the offset of a slice of the loss; empty otherwise",
    "layer": "the layer whose states were read, 0 for the embeddings; -1 where no layer was chosen",
    "seed": "the seed of the probe, such as that of fine-tuning; 0 where it has none",
    "metric": "what `value` is: the table below",
    "value": "the score",
    "n": "test items behind the value; for losses the tokens that were predicted, for predictions the rank",
}
FACTS_MEAN = {
    "noun": "`recipe`, `corpus`, `task` or `probe`",
    "name": "its name in the config",
    "replicate": "the replicate that it holds for; 0: all of them",
    "key": "what is stated, as a key of the config with dots: `objective.mae.delta`; for finished models also "
    "`parameters`, `tokens`, `flops`, `valid_loss.<step>` and `unigram_loss`",
    "value": "the value as JSON",
    "number": "the value where it is a number; empty otherwise",
}
CLAIMS_MEAN = {
    "study": "the study that tests the claim",
    "claim": "its name",
    "headline": "whether it is one of the few claims that its study stands for",
    "section": "where the paper says it",
    "figure": "the figure or table that shows it",
    "text": "the sentence, shortened",
    "comparison": "the effect that was computed, in words",
    "region": "where the effect lies if the sentence is true",
    "margin": "the margin of the regions `equal`, `no more` and `no less`; 0 otherwise",
    "value": "the effect: its mean over replicates, also of the metrics `pearson` and `spearman`; for a correlation"
    " that the claim computes over points (checkpoints, sizes, recipes), and for its square, the mean is taken on"
    " Fisher's scale, as the interval is, and converted back",
    "low": "lower end of its 95 % interval; empty for one replicate",
    "high": "upper end of its 95 % interval; empty for one replicate",
    "unit": "the unit of the effect",
    "replicates": "replicates behind it",
    "items": "whether the interval covers the choice of test items too",
    "p": "the least level at which the claim is decided; empty where it was not tested",
    "verdict": "`supported`, `contradicted`, `negligible`, `inconclusive` or `untested`",
    "why": "why it is negligible, inconclusive or untested",
    "corrected": "the verdict after Holm's correction for the number of claims tested",
    "needed": "replicates that would decide an inconclusive claim with 80 % power; 1001: more than 1000; 0: not given",
    "of_seeds": "for an inconclusive claim, the share of the variance between replicates that seeds of probes make",
    "same_effect": "the first claim of the study with the same effect; its own name where no earlier one has it",
}
CELLS_MEAN = {
    "panel": "the part of the table",
    "row": "the row",
    "recipe": "the recipe in the cell; empty for nulls and differences",
    "label": "the column",
    "step": "the checkpoint",
    "metric": "what `value` is: the table below",
    "value": "the mean over replicates",
    "half": "half the width of its 95 % interval; empty for one replicate, and for a null that is the same in all",
    "low": "lower end of that interval, within what the metric can be; empty for one replicate",
    "high": "its upper end",
    "replicates": "replicates behind it",
    "items": "whether the interval covers the choice of test items too",
    "n": "test items behind it",
    "sizes": "training sizes that the value is the mean over, where there are several: `50, 200`; a"
    " single one only where recipes of its row have others",
    "majority": "what always giving one answer scores; empty where that is not known",
    "mark": "`best`: the best of its row by a paired interval; or why it is no result: `unlearned` (not shown to be"
    " better than every null; † in the table for people), `= majority`, `< majority`, `= chance`, `< chance`; or"
    " `difference`: between two recipes within replicates",
}
METRICS = {
    "accuracy": "share of right answers; for minimal pairs, of pairs whose grammatical half is the likelier",
    "accuracy_full_width": "the same with the softmax over vocabulary and latent logits together",
    "mcc": "Matthews correlation of answers and labels",
    "f1": "F1 of class 1 where there are two classes (`positive` in task.json), else the mean over classes; for"
    " answers in texts, word by word",
    "exact": "share of answers in texts that are right to the letter",
    "pearson": "correlation of predicted and true ratings",
    "spearman": "correlation of their ranks",
    "majority": "accuracy of always giving one answer, or of guessing among the options of an item: what a model that"
    " learned nothing can have",
    "majority_f1": "F1 of always giving the answer that is best for it",
    "best_step": "the update of fine-tuning whose weights were kept",
    "capped": "1 for a fine-tuning that had made all its updates when it ended, 0 for one that stopped early",
    "loss": "cross-entropy of masked tokens, in nats",
    "floor": "the least possible loss under the exact law of the corpus, in nats",
    "gap": "loss less floor, in nats",
    "parameters": "weights of the model",
    "trace": "trace of the Hessian of the loss",
    "trace_embedded": "the same for the model grown to a given width",
    "rank": "effective rank of hidden states, a whole number",
    "rank_interpolated": "the same on the straight lines between whole numbers",
    "rank_entropy": "exp of the entropy of the squared singular values as shares of their sum",
    "rank_counted": "algebraic rank of the law's log conditionals, counted",
    "rank_centred, rank_interpolated_centred, rank_entropy_centred": "the same with the mean state subtracted first",
    "outside": "share of the squared norm outside the subspace of real tokens",
    "outside_beside": "the same, against the real tokens beside the [MASK]s",
    "mean_share": "share of the mean state in their squared norm",
    "seconds": "time that pre-training took",
    "tokens": "tokens that pre-training read",
    "flops": "floating-point operations of pre-training",
    "valid_loss": "plain cross-entropy of hidden tokens of the validation split, whatever the recipe's objective, in"
    " nats per token; they are hidden as in its training (for a masked autoencoder, its decoder predicts them)",
    "exact_untuned, f1_untuned": "the same at a threshold of 0 for unanswerable questions, in place of the one chosen",
    "chosen_l2": "the penalty on squared weights that was chosen for a classifier of words",
    "chosen_lr, chosen_batch_size, chosen_epochs, chosen_warmup": "what a probe's `grid` chose on the validation rows",
    "loss_std": "standard deviation of the mean loss over parts of the test sequences",
    "loss_se, floor_se, gap_se, trace_se, trace_embedded_se": "standard error over sequences",
    "tv_pretrained": "for replaced features: mean total variation of what is predicted beside both before fine-tuning",
    "tv_finetuned": "for replaced features: mean total variation of the predictions for an example after fine-tuning",
    "tv_from_law": "for features: mean total variation between what is predicted beside them and the exact conditional",
    "told": "for words in text: share of them whose synonym lies nearer, before fine-tuning, than another word",
    "pearson_low, pearson_high": "the 95 % bootstrap interval of `pearson` over the features of one replicate",
    "any text with a paraphrase": "for features of text (split `..., replaced`): the change of the prediction",
    "any word or latent property": "for predictions (split `vocabulary` or `atoms`): its probability; `n` is its rank",
}


def _rows(types: dict[str, str], meaning: dict[str, str]) -> list[tuple[str, str, str]]:
    return [(name, KINDS[kind], meaning[name]) for name, kind in types.items()]


# A file -> what a row of it is, and its columns: (name, type, meaning).
FILES = {
    "scores.parquet": ("a score of a checkpoint", _rows(GATHERED, SCORES_MEAN)),
    "facts.parquet": (
        "a fact",
        _rows({name: {"replicate": "int64", "number": "float64"}.get(name, "str") for name in FACTS}, FACTS_MEAN),
    ),
    "claims.parquet": ("a claim", _rows(CLAIMS, CLAIMS_MEAN)),
    "tables/<study>/<name>.parquet": (
        "a cell of a table",
        _rows({name: TYPES.get(name, "str") for name in TIDY}, CELLS_MEAN),
    ),
}


def markdown() -> str:
    """docs/columns.md."""
    parts = [
        "# Columns of the results\n",
        "Made by `masklab schema` from the schemas in the code. `scores.csv`, `facts.csv` and `claims.csv` have the"
        " same columns; a figure has its data beside it, one row for every mark that it draws.",
    ]
    for file, (what, rows) in FILES.items():
        parts += [f"\n## `{file}`: a row is {what}\n", "| column | type | meaning |", "| --- | --- | --- |"]
        parts += [f"| `{name}` | {kind} | {_cell(meaning)} |" for name, kind, meaning in rows]
    parts += ["\n## Metrics\n", "| metric | meaning |", "| --- | --- |"]
    parts += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in METRICS.items()]
    return "\n".join(parts) + "\n"


def write(root: Path) -> None:
    """Write docs/columns.md under `root`."""
    with atomic(root / "docs/columns.md") as temporary:
        temporary.write_text(markdown(), encoding="utf-8")


def _cell(meaning):
    """Words with code between backticks, in a cell of a table."""
    return "`".join(part if at % 2 else escaped(part) for at, part in enumerate(meaning.split("`")))
