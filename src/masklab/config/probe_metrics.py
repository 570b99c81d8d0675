"""Which metrics the rows of a kind of probe can have, so that a misspelt one is found when the config is read; and of
which of them less is better."""

CLASSES = ("accuracy", "mcc", "f1", "majority", "majority_f1")  # of labels
RATINGS = ("pearson", "spearman")
SPANS = ("exact", "f1", "exact_untuned", "f1_untuned", "majority", "majority_f1")
RANKS = tuple(f"rank{form}{of}" for of in ("", "_centred") for form in ("", "_interpolated", "_entropy"))
REPLACED = ("tv_pretrained", "tv_finetuned", "pearson_low", "pearson_high")
FINETUNED = ("best_step", "capped", "chosen_l2", "chosen_lr", "chosen_batch_size", "chosen_epochs", "chosen_warmup")
_LOSSES = ("loss", "floor", "gap")
_TRACES = ("trace", "trace_embedded")
LOWER = (*_LOSSES, *_TRACES)  # of which less is better

# Of MaskLab's own kinds. Those of `prediction` and `paraphrased` are words and texts, too: any.
METRICS = {
    "minimal_pairs": ("accuracy", "accuracy_full_width", "majority"),
    "finetune": tuple(dict.fromkeys((*CLASSES, *RATINGS, *SPANS, *FINETUNED, *RANKS))),
    "linear_probe": (*CLASSES, "best_step"),
    "replaced": (*CLASSES, *RATINGS, *REPLACED, "tv_from_law"),
    "loss": (*_LOSSES, *(f"{metric}_se" for metric in _LOSSES), "loss_std", "parameters"),
    "curvature": (*_TRACES, *(f"{metric}_se" for metric in _TRACES)),
    "landscape": ("loss",),
    "rank": (*RANKS, "outside", "outside_beside", "mean_share", "rank_counted"),
    "cost": ("seconds", "tokens", "flops", "valid_loss"),
}


def metrics_of(facts) -> tuple[str, ...] | None:
    """Metrics that a probe can give, by its facts: of a user's kind those in its `ranges`; None: nobody says."""
    return METRICS.get(facts["kind"]) or tuple(facts.get("ranges", ())) or None


def lower_of(facts) -> set[str]:
    """Metrics of a probe of which less is better, by its facts: losses and traces; of a user's kind its `lower` too."""
    return {*LOWER, *facts.get("lower", ())}
