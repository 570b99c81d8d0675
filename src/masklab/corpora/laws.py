"""Laws of symbolic corpora: what is known exactly of how their sequences were drawn.

A law has `symbols`, the number V of symbols, and gives the distribution of hidden ones: `posterior`, of any hidden
symbols given the others through a noisy channel (markov), or `conditionals(sequences [N, T], lengths [N])`, [N, T, V],
of each symbol given all the others; where all words of a sentence are costly also
`conditionals_at(sequences, lengths, rows [M], columns [M])`, [M, V], of some. Some take `threads`, too (`shared`).
Where sentences may take seconds, `work(lengths [N], asked [N])`, [N], says how much of some seconds each takes in which
`asked` words are asked about.
"""

from importlib import import_module
from inspect import signature

from masklab.config.schema import HiddenMarkov

LAWS = {
    "markov": "masklab.corpora.markov.law",
    "hmm": "masklab.corpora.hmm.law",
    "pcfg": "masklab.corpora.pcfg.law",
    "causal": "masklab.corpora.causal.law",
}


def conditional_rank(header: dict | None) -> int | None:
    """The rank of the law's log conditionals, where the header of a corpus says it; no law is built."""
    if (header or {}).get("kind") != "hmm":
        return None
    return HiddenMarkov(**header["config"]["hmm"]).conditional_rank


def law_of(header: dict | None):
    """The law of a corpus from its header (`symbols.read_header`); None where none is known.

    Each module has `of_header(header)`, which gives None where this very corpus has no law in closed form.
    """
    kind = (header or {}).get("kind")
    return import_module(LAWS[kind]).of_header(header) if kind in LAWS else None


def shared(law, threads: int) -> dict:
    """What tells the conditionals of a law how many threads may share their sums; nothing where they do not ask."""
    return {"threads": threads} if "threads" in signature(law.conditionals).parameters else {}
