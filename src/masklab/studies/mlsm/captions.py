"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

THIN = "Thin lines lead from where a second phase starts to its first checkpoint."
FIGURES = {
    "figure1": "What MLM predicts for one masked word (tokens), and what MLSM predicts for it (latent properties).",
    "figure2": "Minimal pairs, set by set, at the end of pre-training: MLSM+MLM (vertical) against MLSM (horizontal)."
    " A line leads from a label to its point where it stands apart.",
    "figure3": f"Accuracy on minimal pairs over the updates of the second phase. {THIN}",
    "figure2_full_width": "Figure 2 as published: models with latent logits take their softmax over these too.",
    "figure3_full_width": "Figure 3 as published: models with latent logits take their softmax over these too.",
    "figure4": f"Mean score on the labelled tasks of the GLUE kind over the updates of the second phase. {THIN}",
    "figure5": "Mean score on tasks of the MSGS kind, ambiguous and control, over the updates of the second phase."
    f" {THIN}",
    "figure6": "Tasks of the MSGS kind at the end: MLSM+MLM (vertical) against other objectives (horizontal).",
}
TABLES = {
    "table1": "Accuracy on minimal pairs, by set of pairs and objective.",
    "table1_full_width": "The same as published: models with latent logits take their softmax over these too.",
    "table2": "Scores on the labelled tasks of the GLUE kind, by task and objective.",
    "table3": "Scores on the tasks of the MSGS kind, control and ambiguous, by task and objective.",
}
