"""Figures 7 and 8: example trees of the grammar, example sentences of the causal model.

They read the facts of a corpus and no scores; seeds are those of the corpus, so that equal corpora give equal figures.
"""

import textwrap

import pandas as pd

from masklab.errors import MaskLabError
from masklab.report import style
from masklab.symbols import read_header

TREES, WIDTH = 3, 96  # trees drawn; characters of a line of text


def figure7(results, chosen, corpora=()):
    """Trees of the grammar of a `pcfg` corpus, each with its sentence below; `corpora`: its train.parquet."""
    from masklab.corpora.pcfg.law import rules_of
    from masklab.corpora.pcfg.trees import sample_tree

    facts = _facts(corpora, "pcfg")
    config = facts["config"]
    data = []
    for number in range(TREES):
        lengths = {"min_length": config["min_length"], "max_length": config["max_length"]}
        tree = sample_tree(rules_of(facts), facts["seed"], "figure7", config["seed"], number, **lengths)
        data += [{"tree": number + 1, **row} for row in nodes(tree)]
    data = pd.DataFrame(data)
    leaves = data[data["word"]].groupby("tree")["x"].count()
    depth = int(data["depth"].max())
    figure = style.new_figure(style.FULL, (0.24 * depth + 0.35) * len(leaves))
    for axes, (number, part) in zip(
        figure.subplots(len(leaves), 1, squeeze=False)[:, 0], data.groupby("tree"), strict=True
    ):
        _draw(axes, part, depth, leaves.max())
        style.panel_title(axes, "", number - 1)
    return figure, data


def nodes(tree) -> list[dict]:
    """Rows of a tree (name, left, right) or (name, word), parents before children.

    node and parent: numbers (-1: none); name; word: whether it is a leaf; depth: 0 at the root; x: leaves at 0, 1, ...,
    a symbol in the middle of its children.
    """
    rows, count = [], 0

    def place(part, parent, depth):
        nonlocal count
        number = len(rows)
        leaf = isinstance(part, str)
        rows.append({"node": number, "parent": parent, "name": part if leaf else part[0], "word": leaf, "depth": depth})
        if leaf:
            rows[number]["x"], count = float(count), count + 1
        else:
            places = [place(child, number, depth + 1) for child in part[1:]]
            rows[number]["x"] = sum(places) / len(places)
        return rows[number]["x"]

    place(tree, -1, 0)
    return rows


def _draw(axes, part, depth, widest):
    at = part.set_index("node")
    size = min(7.0, 180 / widest)
    for row in part.itertuples():
        if row.parent >= 0:
            above = at.loc[row.parent]
            axes.plot([above["x"], row.x], [-above["depth"], -row.depth], color=style.GREY, linewidth=0.7, zorder=1)
    for row in part.itertuples():
        look = {"color": "#D55E00"} if row.word else {"color": "black"}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(
            row.x, -row.depth, row.name, ha="center", va="center", fontsize=size, bbox=box, parse_math=False, **look
        )
    middle = (part["x"].max() - widest + 1) / 2
    axes.set_xlim(middle - 0.6, middle + widest - 0.4)
    axes.set_ylim(-depth - 0.5, 0.5)
    axes.axis("off")


def figure8(results, chosen, corpora=()):
    """Sentences of a `causal` corpus as text; `corpora`: its train.parquet."""
    facts = _facts(corpora, "causal")
    data = pd.DataFrame({"sentence": range(1, len(facts["examples"]) + 1), "text": facts["examples"]})
    lines = [textwrap.wrap(" ".join(text.split()), WIDTH) or [""] for text in data["text"]]
    figure = style.new_figure(style.FULL, 0.155 * sum(map(len, lines)) + 0.09 * len(lines) + 0.1)
    axes = figure.subplots()
    axes.axis("off")
    axes.set_xlim(0, 1)
    place = 0.0
    for number, wrapped in zip(data["sentence"], lines, strict=True):
        axes.text(0.0, -place, f"{number}", va="top", ha="left", fontsize=7.5, color="0.45")
        axes.text(0.03, -place, "\n".join(wrapped), va="top", ha="left", fontsize=7.5, parse_math=False)
        place += len(wrapped) + 0.6
    axes.set_ylim(-place, 0.2)
    return figure, data


def _facts(corpora, kind):
    facts = read_header(corpora[0]) if len(corpora) == 1 else None
    if not facts or facts.get("kind") != kind:
        raise MaskLabError(f"{', '.join(map(str, corpora)) or 'no corpus'}: the figure needs one {kind} corpus")
    return facts
