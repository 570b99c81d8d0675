"""What the figures and tables of `implicit-bias` show, by corpus; light: read at parse time."""

from masklab.config import study_models
from masklab.config.schema import Config, Study
from masklab.errors import MaskLabError
from masklab.figures.spec import Spec

CORPORA = {"pcfg": "PCFG", "hmm": "HMM", "causal": "Causal LM"}
# Corpus -> the sets of tasks that a figure shows; panels are named as the corpus, with a suffix for SGD.
BY_STEP = {"pcfg": ("pcfg-c",), "causal": ("causal-qnli",)}
BY_SIZE = {"pcfg": ("pcfg-b",), "hmm": ("hmm-10",), "causal": ("causal-qnli",)}
BY_SIZE_MORE = {"pcfg": ("pcfg-a",), "hmm": ("hmm-6",), "causal": ("causal-sst2",)}
SGD = {"pcfg": ("pcfg-c",), "hmm": ("hmm-10",)}
SGD_MORE = {"pcfg": ("pcfg-a", "pcfg-b"), "hmm": ("hmm-6",)}
MASKS = {"pcfg": ("pcfg-a", "pcfg-b", "pcfg-c")}
ALGORITHMS = "pcfg-algorithms"


def columns(study: Study, wanted: dict[str, tuple[str, ...]], suffix: str = "") -> list[tuple[str, str]]:
    """(panel, set) pairs that the study has, of corpus -> sets; the panel is the corpus's name and `suffix`.

    MaskLabError if it has none of them.
    """
    pairs = [(f"{corpus}{suffix}", name) for corpus, names in wanted.items() for name in names]
    found = [(panel, name) for panel, name in pairs if study.panels.get(panel) and study.sets.get(name)]
    if not found:
        said = " or ".join(f"a panel {panel!r} with a set {name!r}" for panel, name in pairs)
        raise MaskLabError(f"needs {said}")
    return found


def models(wanted: dict[str, tuple[str, ...]], suffixes: tuple[str, ...] = ("",)):
    """`Spec.models` of a figure of these corpora."""

    def found(study: Study, config: Config) -> list[str]:
        panels = [panel for suffix in suffixes for panel, _ in columns(study, wanted, suffix)]
        return list(dict.fromkeys(model for panel in panels for model in study.members[panel]))

    return found


def algorithms(study: Study, config: Config) -> list[str]:
    """`Spec.models` of the tables that compare ways of training."""
    if ALGORITHMS not in study.panels:
        raise MaskLabError(f"needs a panel {ALGORITHMS!r}")
    return study.members[ALGORITHMS]


def every_size(study: Study, config: Config) -> list[str]:
    """`Spec.models` of what shows the sizes of every corpus."""
    found = [model for panel in CORPORA for model in study.members.get(panel, [])]
    if not found:
        raise MaskLabError(f"needs a panel {' or '.join(map(repr, CORPORA))}")
    return found


def sliced(study: Study, config: Config) -> list[str]:
    """`Spec.models` of Figure 4: the models that landscape probes measure."""
    probes = [name for name in study.probes if config.probes[name].kind == "landscape"]
    if not probes:
        raise MaskLabError("needs a landscape probe among the study's probes")
    found = [model for name in probes for model in (() if study.probes[name] == "all" else study.probes[name])]
    return list(dict.fromkeys(found)) or study_models(study)


def grown(study: Study, config: Config) -> dict:
    """`Spec.given` of Figure 4: landscape probe -> whether it grows models first."""
    kinds = {name: config.probes[name] for name in study.probes if config.probes[name].kind == "landscape"}
    return {"grown": {name: bool(probe.width or probe.layers) for name, probe in kinds.items()}}


def corpus_of(panel: str):
    """`Spec.corpora` of a figure that shows the corpus of a panel's models."""

    def found(study: Study, config: Config) -> list[str]:
        if not study.members.get(panel):
            raise MaskLabError(f"needs a panel {panel!r}")
        return [config.models[study.members[panel][0]].corpus]

    return found


def figures() -> dict[str, Spec]:
    """The figures of the study."""
    loss, curvature = ("loss", "linear_probe"), ("loss", "linear_probe", "curvature")

    def spec(name, kinds, *which):
        return Spec(f"masklab.figures.implicit_bias:{name}", kinds, models(*which))

    return {
        "figure1": spec("figure1", loss, BY_STEP),
        "figure2": spec("figure2", loss, BY_SIZE),
        "figure3": spec("figure3", curvature, SGD, ("-sgd",)),
        "figure4": Spec("masklab.figures.flatness:figure4", ("landscape",), sliced, given=grown),
        "figure5": spec("figure5", curvature, BY_SIZE),
        "figure5_embedded": spec("figure5_embedded", curvature, BY_SIZE),
        "figure6": Spec("masklab.figures.flatness:figure6", ()),
        "figure7": Spec("masklab.figures.samples:figure7", (), corpora=corpus_of("pcfg")),
        "figure8": Spec("masklab.figures.samples:figure8", (), corpora=corpus_of("causal")),
        "figure9": spec("figure9", loss, BY_SIZE_MORE),
        "figure10": spec("figure10", curvature, SGD_MORE, ("-sgd",)),
        "figure11": spec("figure11", loss, MASKS, ("", "-15")),
    }


def shapes(study: Study, config: Config) -> dict:
    """`Spec.given` of Table 3: model -> width, heads (of a transformer), layers, width of the feed-forward layer."""
    found = {}
    for model in (name for panel in CORPORA for name in study.members.get(panel, [])):
        encoder = config.encoders[config.models[model].encoder]
        found[model] = {"hidden": encoder.hidden, "layers": encoder.layers}
        if encoder.kind == "transformer":
            found[model] |= {"heads": encoder.heads, "intermediate": encoder.ffn}
    return {"shapes": found}


def tables() -> dict[str, Spec]:
    """The tables of the study."""
    three = ("loss", "linear_probe", "curvature")
    return {
        "table1": Spec("masklab.tables.implicit_bias:table1", ("loss", "linear_probe"), algorithms),
        "table2": Spec("masklab.tables.implicit_bias:table2", three, algorithms),
        "table3": Spec("masklab.tables.implicit_bias:table3", ("loss",), every_size, given=shapes),
    }
