"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

CURVES = "accuracy by test domain against their number"
HALF, NONE, SOME = "half of them from B-D2", "all of them from A-D1", "a tenth of them from B-D2"
FIGURES = {
    "figure1": "How a sequence comes about: two walks over synsets, spelt with and without the property.",
    "figure2": f"Fine-tuning examples, {HALF}: {CURVES}.",
    "figure3a": f"Fine-tuning examples, {NONE}: {CURVES}.",
    "figure3b": f"Fine-tuning examples, {SOME}: {CURVES}.",
    "figure5a": f"Features of several tokens from one alphabet; fine-tuning examples, {HALF}: {CURVES}.",
    "figure5b": f"Features of several tokens from alphabets of their own; fine-tuning examples, {HALF}: {CURVES}.",
    "figure6": "Figures 2, 3a and 3b together.",
    "figure7": f"Features of several tokens; fine-tuning examples, {NONE} or {SOME}: {CURVES}.",
}
TABLES = {
    f"table{name}": f"The numbers of Figure {name}, with intervals." for name in ("2", "3a", "3b", "5a", "5b", "7")
}
TABLES |= {"losses": "Loss of each pre-trained model, the least possible loss, and the gap between them."}
