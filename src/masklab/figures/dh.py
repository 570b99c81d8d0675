"""Figures 2, 3, 5, 6 and 7 of Chiang and Yogatama (EMNLP 2023) from fine-tuning scores; Figure 1: `figures.chain`.

Each function reads score rows and returns (figure, data): `data` holds exactly what is drawn. Unlike the
paper's, whose points are single runs, curves are means over seeds with intervals.
"""

from masklab.config.schema import Study
from masklab.figures import style
from masklab.figures.transfer import mix_title, transfer_figure

_SEVEN = {
    f"{panel}-{percent}": f"{panel.capitalize()}, {mix}"
    for panel in ("separate", "shared")
    for percent, mix in ((0, "100 % A-D1"), (10, "10 % B-D2"))
}


def _transfer(said: str, *sets: str, height: float = 2.5, titles: dict[str, str] | None = None):
    """The function that draws the study's `sets`, one row of panels each."""

    @style.paper
    def draw(scores, study: Study, labels, metrics, starts=None):
        return transfer_figure(scores, study, titles or {name: mix_title(name) for name in sets}, height=height)

    draw.__doc__ = said
    return draw


figure2 = _transfer("Sample efficiency: fine-tuned on half A-D1, half B-D2.", "single-50")
figure3a = _transfer("Generalisation: fine-tuned on A-D1 alone.", "single-0")
figure3b = _transfer("Generalisation: a tenth of the fine-tuning data is B-D2.", "single-10")
figure5a = _transfer("Figure 2 with features of several tokens, both of one vocabulary.", "shared-50")
figure5b = _transfer("Figure 2 with features of several tokens, of separate vocabularies.", "separate-50")
figure6 = _transfer("Figures 2, 3a and 3b enlarged.", "single-50", "single-0", "single-10", height=2.75)
figure7 = _transfer("Figure 3 with features of several tokens, all A-D1 or a tenth B-D2.", titles=_SEVEN, height=2.05)
