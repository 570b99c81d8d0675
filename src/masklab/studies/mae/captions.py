"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

FIGURES = {
    "figure1a": (
        "Effective rank of the hidden states by layer, for inputs with and without [MASK]; a null has the line, solid"
        " or dashed, of its inputs."
    ),
    "figure1a_centred": "Figure 1a with the mean state subtracted first.",
    "figure1b": (
        "Effective rank of the states at [MASK] alone, by layer, plain and with the mean subtracted. Nulls are those of"
        " the first way of pre-training."
    ),
    "figure_outside": (
        "Share of the squared norm outside the subspace that holds nearly all of real tokens', by layer: of [MASK]s, of"
        " random words in their places, and of the words that stood there; the last is what the subspace leaves out of"
        " real tokens, up to sampling."
    ),
    "figure_law": (
        "Against the rank of the law's log conditionals T, which is known: the rank of states in the last layer (of T"
        " itself, less the mean of each row), the gap between masked and unmasked inputs, and shares outside the"
        " subspace of real tokens."
    ),
    "figure_loss": (
        "Checkpoints against their validation loss: the gap of the centred rank between masked and unmasked inputs, the"
        " part of it that the states of [MASK]s make, and their share outside the subspace of real tokens, less that of"
        " the words that they hide; means over the layers."
    ),
    "figure3": (
        "Score after fine-tuning against the cost of pre-training: time, FLOPs, tokens; dash-dotted: MLM's last score."
    ),
    "figure4": "Score after fine-tuning against the share of [MASK]s that stay in the encoder; dash-dotted: MLM.",
}
TABLES = {
    "table1": "Scores after fine-tuning, by task and way of pre-training.",
    "table2": "Ablations of MAE-LM: mean scores over tasks of sentences and of answers.",
    "table3": "Effective rank of real tokens after pre-training and after fine-tuning.",
    "ranks": (
        "The gap of effective ranks between masked and unmasked inputs and its parts, and shares of the squared norm"
        " outside the subspace that holds nearly all of real tokens'; means over the layers. n: tokens, of the"
        " replicate that has the fewest."
    ),
}
