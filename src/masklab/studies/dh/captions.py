"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

CURVES = "accuracy against their number, a panel per test domain"
DOMAINS = (
    "A and B: the two forms that each synset can be spelt in; D1 and D2: the two chains that sequences of synsets are"
    " drawn from. w/ DH: pre-trained on text in which both forms of a synset have the same contexts; w/o DH: each chain"
    " keeps to one form"
)
HALF, NONE, SOME = "half of them or more from B-D2", "all of them from A-D1", "fewer than half of them from B-D2"
OWN = (
    "Each classifier has features of its own replaced, those that are the most salient to it, so that columns are about"
    " unlike features; where they are drawn, they are, in a replicate, the same for all."
)
BEFORE = "how far the predictions of the pre-trained model lie apart beside the two features"
FIGURES = {
    "figure1": "How a sequence comes about: two walks over synsets, spelt with and without the property.",
    "figure2": f"Fine-tuning examples, {HALF}: {CURVES}. {DOMAINS}.",
    "figure3a": f"Fine-tuning examples, {NONE}: {CURVES}. {DOMAINS}.",
    "figure3b": f"Fine-tuning examples, {SOME}: {CURVES}. {DOMAINS}.",
    "figure_phrases": "Section 6 on text: how the change of the fine-tuned prediction goes with"
    f" {BEFORE}, for features of each level, over the updates of fine-tuning on the largest set and over the number of"
    " its examples. Hollow: initial weights that are fine-tuned alike, with what they predicted before; crosses: these"
    " classifiers, with what the pre-trained model predicts. Each classifier has salient words of its own; drawn ones"
    " are, in a replicate, the same for all. Only the first row is in the paper.",
    "figure5a": f"Features of several tokens from one alphabet; fine-tuning examples, {HALF}: {CURVES}. {DOMAINS}.",
    "figure5b": f"Features of several tokens from two alphabets; fine-tuning examples, {HALF}: {CURVES}. {DOMAINS}.",
    "figure6": f"Figures 2, 3a and 3b together. {DOMAINS}.",
    "figure7": f"Features of several tokens; fine-tuning examples, {NONE} or {SOME}: {CURVES}. {DOMAINS}.",
    "figure_dose": "Not in the paper: accuracy against the share of forms that are mixed in pre-training, from none"
    f" (w/o DH) to all (w/ DH). {DOMAINS}.",
    "figure_course": "Not in the paper: accuracy after fine-tuning checkpoints of w/ DH, against how far their loss is"
    f" from the least possible one. {DOMAINS}.",
    "figure_replaced": "Section 6 on the pseudo-language: how the change of the fine-tuned prediction goes with"
    f" {BEFORE}, over all replacements (some of them by synonyms), true synonyms alone, and others alone. {OWN}",
    "figure_replaced_course": "The same over all replacements, in the course of fine-tuning on the largest set.",
}
TABLES = {
    f"table{name}": f"The numbers of Figure {name}, with intervals. {DOMAINS}."
    for name in ("2", "3a", "3b", "5a", "5b", "7")
}
TABLES |= {
    "phrases": "Section 6 on text, at the largest number of examples: correlations with their intervals over features,"
    " the mean distances (total variation), and the accuracy of the same classifiers.",
    "replaced": "Section 6 on the pseudo-language, at the largest number of examples: correlations of the change of the"
    f" fine-tuned prediction with {BEFORE}, the mean distances (total variation), and the accuracy of the same"
    f" classifiers on the examples and on the same examples in the other form. {OWN} n: features, of the replicate that"
    " has the fewest: a coin decides which are synonyms.",
    "stopping": "Share of fine-tunings that ended at the last update they could make (capped), not for want of"
    " improvement, and the mean update whose weights were kept.",
}
