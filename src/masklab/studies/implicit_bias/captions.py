"""What each figure and table of the wing shows, in a sentence or two, as it stands beside it."""

FIGURES = {
    "figure1": "Pre-training loss and accuracy of a linear probe over the updates, for every size of model.",
    "figure2": "Pre-training loss and accuracy at the end against model size; dash-dotted: where the loss saturates.",
    "figure3": "Trace of the Hessian, loss and accuracy over the updates of SGD, from where AdamW ended.",
    "figure4": "Mean loss along random directions: early and late checkpoints, a small model grown to the size of a"
    " large one, which leaves what it computes as it is, beside the large one as trained.",
    "figure5": "Accuracy against the trace of the Hessian, a point per size; parameters beside all points of a panel"
    " that has up to eight of which none covers another, else beside those off the lowest loss and beside the smallest"
    " and the largest at it."
    " r: the correlation of both over the sizes at equal loss, of which it needs three, in each replicate, and its mean"
    " over these. The line is the regression of the means drawn, and may run the other way.",
    "figure5_embedded": "Figure 5 with the traces of models grown to one width.",
    "figure6": "Two solutions of equal loss for balanced brackets, computed: neurons, flatness, and what transfers.",
    "figure7": "Sentences of the generated grammar with their trees.",
    "figure8": "Sentences drawn from the small causal language model.",
    "figure9": "Figure 2 for the remaining tasks.",
    "figure10": "Figure 3 for the remaining tasks.",
    "figure11": "Loss and accuracy against model size, trained with one mask per sentence and with more.",
    "figure_cooled": "Not in the paper: a course of AdamW at a constant rate, cooled from several of its checkpoints:"
    " loss, trace of the Hessian and accuracies by the updates until then; hollow: not at the lowest loss.",
    "figure_drift": "Not in the paper: Theorem 3.3 where all is known. SGD on a logistic model drifts along its minima"
    " to the flattest, as fast as the theorem says, whatever rate and batch size; hollow: the larger rate.",
    "figure_pressed": "Not in the paper: models of one size, trained alike but for a term that lowers or raises the"
    " trace of the Hessian. Their trace and loss, and accuracy against the trace; hollow: not at the lowest loss.",
    "figure_swept": "Not in the paper: SGD at several rates, batch sizes and lengths, by its updates and by the time of"
    " Theorem 3.3; each point is the end of a run whose rate falls to 0; hollow: not at the lowest loss.",
}
TABLES = {
    "table1": "Ways of training: loss, its gap to the least possible one, and accuracy on tasks A and B.",
    "table2": "Ways of training: loss, its gap to the least possible one, accuracy on task C, trace of the Hessian.",
    "table3": "Parameters, layers and widths of every size.",
}
