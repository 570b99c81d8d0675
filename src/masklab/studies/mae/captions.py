"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

FIGURES = {
    "figure1a": "Effective rank of the hidden states by layer, for inputs with and without [MASK].",
    "figure1a_centred": "Figure 1a with the mean state subtracted first.",
    "figure1b": "Effective rank of the states at [MASK] alone, by layer, plain and with the mean subtracted.",
    "figure3": "Score after fine-tuning against the cost of pre-training: time, FLOPs, tokens; dotted: MLM's last.",
    "figure4": "Score after fine-tuning against the share of [MASK]s that stay in the encoder; dotted: MLM.",
}
TABLES = {
    "table1": "Scores after fine-tuning, by task and way of pre-training.",
    "table2": "Ablations of MAE-LM: mean scores over tasks of sentences and of answers.",
    "table3": "Effective rank of real tokens after pre-training and after fine-tuning.",
    "losses": "Pre-training loss, the least possible one, and the gap between them.",
}
