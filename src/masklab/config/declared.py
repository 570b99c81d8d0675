"""Checks that many entries share: a name is declared, a step is kept, a corpus and a tokenizer belong together."""

from masklab.config.inherit import hint
from masklab.config.places import Misfit
from masklab.config.references import checkpoints, split_reference, symbols_of
from masklab.errors import MaskLabError

SYMBOLIC = {"markov", "hmm", "pcfg", "causal"}  # kinds of corpora whose splits hold symbols instead of text


def known(names, name, where):
    """MaskLabError where a name is none of those declared."""
    if name not in names:
        said = hint(name, names)
        if where.endswith(".tokenizer") and "did you mean" not in said:
            said += "; one made elsewhere is declared there too: {kind: folder, folder: <its folder>}"
        raise MaskLabError(f"config: {where}: {name!r} is not declared{said}")


def known_checkpoint(config, reference, where):
    """The recipe that `recipe@step` names, which keeps this step."""
    name, at, step = reference.rpartition("@") if "@" in reference else (reference, "", "")
    if not step.isdecimal():
        known(config.models, name, where)
        wrong = f"{step!r} is not a step" if at else "needs a step"
        raise MaskLabError(f"config: {where}: {wrong}; write {name}@{checkpoints(config.models[name])[-1]}")
    name, step = split_reference(reference, where)
    known(config.models, name, where)
    model = config.models[name]
    kept = checkpoints(model)
    if step not in kept:
        start = f"{where.rpartition('.')[0]} starts from {reference}"
        raise Misfit(
            f"config: {where}: {name} keeps no step {step}; it keeps {', '.join(map(str, kept))}: its checkpoints and"
            " its last step",
            {
                f"models.{name}.steps": f"{start}, which {model.steps} steps never reach"
                if model.steps < step
                else f"{start}, which is neither a checkpoint nor the last step",
            }
            | ({f"models.{name}.checkpoints": f"{start}, which it does not list"} if model.steps >= step else {}),
        )
    return config.models[name]


def check_symbols(config, corpus, tokenizer, where):
    """A corpus of symbols needs their own tokenizer: of this corpus, or of one with the same law."""
    known(config.corpora, corpus, where)
    symbols, text = config.tokenizers[tokenizer].kind == "symbols", config.corpora[corpus].kind not in SYMBOLIC
    if symbols == text:
        is_, needs = ("text", "kind: unigram") if text else ("symbols", "kind: symbols")
        unread, entry = f"that tokenizer {tokenizer!r} cannot read", where.rpartition(".")[0]
        declare = f"declare a tokenizer {{{needs}, corpus: {corpus}}} and name it"
        otherwise = {f"{entry}.corpus": f"a corpus of {is_} {unread}; {declare} here"}
        advice = f"; {declare}"
        if where.startswith("tokenizers."):
            otherwise, advice = {}, f"; write {needs} in {entry}"
            otherwise[f"{entry}.kind"] = f"cannot read corpus {corpus!r}, which holds {is_}{advice}"
        otherwise[f"corpora.{corpus}.kind"] = f"makes it a corpus of {is_} {unread}{advice}"
        raise Misfit(
            f"config: {where}: corpus {corpus!r} holds {is_}, which tokenizer {tokenizer!r} cannot read{advice}",
            otherwise,
        )
    if not symbols:
        return
    named = config.corpora[config.tokenizers[tokenizer].corpus]
    if symbols_of(config, named) != symbols_of(config, config.corpora[corpus]):
        raise MaskLabError(
            f"config: {where}: {tokenizer!r} names the symbols of another law than {corpus!r} has; it takes one of"
            f" kind: symbols with corpus: {corpus}"
        )
