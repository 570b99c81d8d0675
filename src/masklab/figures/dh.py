"""Figures 2, 3, 5, 6 and 7 of Chiang and Yogatama (EMNLP 2023) from fine-tuning scores; Figure 1: `figures.chain`.

Each function reads score rows and returns (figure, data): `data` holds exactly what is drawn. Unlike the
paper's, whose points are single runs, curves are means over seeds with intervals.
"""

from masklab.config.schema import Study
from masklab.figures import style
from masklab.figures.transfer import mix_title, transfer_figure


@style.paper
def figure2(scores, study: Study, labels, metrics, starts=None):
    """Sample efficiency: fine-tuned on half A-D1, half B-D2."""
    return _one(scores, study, "single-50")


@style.paper
def figure3a(scores, study: Study, labels, metrics, starts=None):
    """Generalisation: fine-tuned on A-D1 alone."""
    return _one(scores, study, "single-0")


@style.paper
def figure3b(scores, study: Study, labels, metrics, starts=None):
    """Generalisation: a tenth of the fine-tuning data is B-D2."""
    return _one(scores, study, "single-10")


@style.paper
def figure5a(scores, study: Study, labels, metrics, starts=None):
    """Figure 2 with features of several tokens, both of one vocabulary."""
    return _one(scores, study, "shared-50")


@style.paper
def figure5b(scores, study: Study, labels, metrics, starts=None):
    """Figure 2 with features of several tokens, of separate vocabularies."""
    return _one(scores, study, "separate-50")


@style.paper
def figure6(scores, study: Study, labels, metrics, starts=None):
    """Figures 2, 3a and 3b enlarged."""
    sets = ("single-50", "single-0", "single-10")
    return transfer_figure(scores, study, {name: mix_title(name) for name in sets}, height=2.75)


@style.paper
def figure7(scores, study: Study, labels, metrics, starts=None):
    """Figure 3 with features of several tokens: vocabularies separate or shared, all A-D1 or a tenth B-D2."""
    titles = {
        f"{panel}-{percent}": f"{panel.capitalize()}, {mix}"
        for panel in ("separate", "shared")
        for percent, mix in ((0, "100 % A-D1"), (10, "10 % B-D2"))
    }
    return transfer_figure(scores, study, titles, height=2.05)


def _one(scores, study, name):
    return transfer_figure(scores, study, {name: mix_title(name)})
