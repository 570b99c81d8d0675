"""Checks that many entries share: a name is declared, a step is kept, a corpus and a tokenizer belong together."""

from masklab.config.inherit import hint
from masklab.config.references import checkpoints, split_reference, symbols_of
from masklab.errors import MaskLabError

SYMBOLIC = {"markov", "hmm", "pcfg", "causal"}  # kinds of corpora whose splits hold symbols instead of text


def known(names, name, where):
    """MaskLabError where a name is none of those declared."""
    if name not in names:
        raise MaskLabError(f"config: {where}: {name!r} is not declared{hint(name, names)}")


def known_checkpoint(config, reference, where):
    """The recipe that `recipe@step` names, which keeps this step."""
    name, step = split_reference(reference, where)
    known(config.models, name, where)
    kept = checkpoints(config.models[name])
    if step not in kept:
        raise MaskLabError(
            f"config: {where}: {name} keeps no step {step}; it keeps {', '.join(map(str, kept))}: its checkpoints and"
            " its last step"
        )
    return config.models[name]


def check_symbols(config, corpus, tokenizer, where):
    """A corpus of symbols needs their own tokenizer: of this corpus, or of one with the same law."""
    known(config.corpora, corpus, where)
    symbols, text = config.tokenizers[tokenizer].kind == "symbols", config.corpora[corpus].kind not in SYMBOLIC
    if symbols == text:
        is_, needs = ("text", "kind: unigram, bpe or wordpiece") if text else ("symbols", "kind: symbols")
        raise MaskLabError(
            f"config: {where}: corpus {corpus!r} holds {is_}, which tokenizer {tokenizer!r} cannot read; it takes one"
            f" of {needs} with corpus: {corpus}"
        )
    named = config.corpora[config.tokenizers[tokenizer].corpus]
    if symbols and symbols_of(config, named) != symbols_of(config, config.corpora[corpus]):
        raise MaskLabError(
            f"config: {where}: {tokenizer!r} names the symbols of another law than {corpus!r} has; it takes one of"
            f" kind: symbols with corpus: {corpus}"
        )
