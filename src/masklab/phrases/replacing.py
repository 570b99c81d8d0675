"""Which features of test examples are replaced, and by what: the most salient ones of a classifier, and drawn words."""

from masklab.config.adopted import found
from masklab.phrases import DRAWN_WORD, LONG, SHORT, WORD
from masklab.phrases.examples import Feature
from masklab.phrases.parses import SHORT as FEW
from masklab.phrases.saliency import saliency
from masklab.phrases.synonyms import Synonyms
from masklab.phrases.translation import Translator, paraphrases
from masklab.rng import generator

LEAST = 3  # features that a correlation needs


class Sources:
    """Where paraphrases come from: MaskLabError in one line where a database or a model is missing."""

    def __init__(self, probe, device):
        self.synonyms = None if probe.wordnet is None else Synonyms(probe.wordnet)
        self.pair, self.translated = None, {}  # (what stands before, phrase) -> its translation there and back
        if probe.there is not None:
            self.pair = [Translator(found(model), device) for model in (probe.there, probe.back)]


def features(examples, classifier, reader, sources, address, drawn=False) -> dict[str, list[Feature]]:
    """Level -> the features that are replaced; drawn: words that are drawn, too, the same for every model
    of a replicate."""
    texts = [(example, text) for example in examples for text in example.parsed]
    pairs = reader.pairs([example.texts for example, _ in texts])
    chosen: dict[str, list[Feature]] = {}
    if sources.synonyms is not None:
        rng = generator(*address, "synonyms")
        words = _most_salient(texts, pairs, classifier, reader, lambda node: len(node) == 1)
        given = (_reworded(*word, sources.synonyms, rng) for word in words)
        chosen[WORD] = [feature for feature in given if feature is not None]
        if drawn:
            chosen[DRAWN_WORD] = _drawn(texts, sources.synonyms, generator(*address, "drawn"))
    if sources.pair is not None:
        short = _most_salient(texts, pairs, classifier, reader, lambda node: len(node) <= FEW)
        long = [(example, text, node) for example, text in texts if (node := text.tree.longest()) is not None]
        chosen |= {SHORT: _translated(short, sources), LONG: _translated(long, sources)}
    return {level: of for level, of in chosen.items() if len(of) >= LEAST}


def _reworded(example, text, node, synonyms, rng) -> Feature | None:
    """A word with one of its synonyms in its place; None where it has none."""
    labelled, word = text.tree.labelled, text.part(node)
    tag = node.label if labelled else synonyms.tag(word)
    options = synonyms.of(word, tag)
    new = options[int(rng.integers(len(options)))] if options else None
    return None if new is None else Feature(example, text, node, new, None if labelled else tag)


def _drawn(texts, synonyms, rng) -> list[Feature]:
    """Of each text that has such a word, one that has synonyms, whatever a classifier minds."""
    features = []
    for example, text in texts:
        words = [node for node in text.tree.candidates if len(node) == 1]
        reworded = (_reworded(example, text, words[at], synonyms, rng) for at in rng.permutation(len(words)))
        if (feature := next(filter(None, reworded), None)) is not None:
            features.append(feature)
    return features


def _most_salient(texts, pairs, classifier, reader, allowed):
    """(example, text, node): of each text the candidate whose hiding takes the most from the predicted label."""
    nodes = [[node for node in text.tree.candidates if allowed(node)] for _, text in texts]
    spans = [reader.spans(text, of) if of else [] for (_, text), of in zip(texts, nodes, strict=True)]
    scores = saliency(classifier, pairs, spans, reader.longest, reader.device)
    return [
        (example, text, of[int(given.argmin())])
        for (example, text), of, given in zip(texts, nodes, scores, strict=True)
        if of
    ]


def _translated(chosen, sources) -> list[Feature]:
    """Each phrase is translated once, whichever classifiers choose it: the longest one is the same for all."""
    phrases = [(text.text[: text.place(node)[0]], text.part(node)) for _, text, node in chosen]
    if unseen := [phrase for phrase in dict.fromkeys(phrases) if phrase not in sources.translated]:
        new = paraphrases(*sources.pair, *map(list, zip(*unseen, strict=True)))
        sources.translated |= dict(zip(unseen, new, strict=True))
    new = (sources.translated[phrase] for phrase in phrases)
    return [Feature(*one, text) for one, text in zip(chosen, new, strict=True) if text is not None]
