"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

CURVES = "Accuracy by test domain against the number of fine-tuning examples"
MULTI = "where a feature is several tokens"
HALF, NONE, SOME = "half of them from B-D2", "all of them from A-D1", "a tenth of them from B-D2"
FIGURES = {
    "figure1": "How a sequence comes about: two walks over synsets, and how they are spelt with and without the property.",
    "figure2": f"{CURVES}, {HALF}.",
    "figure3a": f"{CURVES}, {NONE}.",
    "figure3b": f"{CURVES}, {SOME}.",
    "figure5a": f"{CURVES}, {HALF}, {MULTI} from one alphabet.",
    "figure5b": f"{CURVES}, {HALF}, {MULTI} from alphabets of their own.",
    "figure6": "Figures 2, 3a and 3b together.",
    "figure7": f"{CURVES}, {NONE} and {SOME}, {MULTI}.",
}
TABLES = {
    f"table{name}": f"The numbers of Figure {name}, with intervals." for name in ("2", "3a", "3b", "5a", "5b", "7")
}
TABLES |= {"losses": "Loss of each pre-trained model, the least possible loss, and the gap between them."}
