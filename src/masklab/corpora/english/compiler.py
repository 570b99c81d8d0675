"""Compile the feature grammar to a plain context-free grammar.

Variables are replaced by every value of their domain, optional parts by both
variants; symbols that derive no sentence are dropped with the alternatives that
need them, and so is what cannot be reached from `Root`.
"""

import itertools
import re
from collections import Counter
from functools import lru_cache

from masklab.corpora.english.grammar import DOMAINS, RULES
from masklab.corpora.english.lexicon import LEXICON

_VARIABLE = re.compile(r"\?([a-z]+)\d*")
_OPTIONAL = re.compile(r"\{([.\d]+) ([^}]*)\}")


def domain(variable: str) -> tuple[str, ...]:
    """Values of a variable such as `?h2` (the name without digits is the domain's)."""
    return DOMAINS[_VARIABLE.fullmatch(variable).group(1)]


def instances(text: str) -> list[dict[str, str]]:
    """Every assignment of the variables in `text`, as {variable: value}."""
    names = sorted({match.group(0) for match in _VARIABLE.finditer(text)})
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*map(domain, names))]


def substitute(text: str, values: dict[str, str]) -> str:
    """`text` with every variable replaced by its value."""
    return _VARIABLE.sub(lambda match: values[match.group(0)], text)


def _variants(text: str) -> list[tuple[float, str]]:
    """(probability, text) for each choice of the optional parts."""
    match = _OPTIONAL.search(text)
    if match is None:
        return [(1.0, text)]
    share, inside = float(match.group(1)), match.group(2)
    before, after = text[: match.start()], text[match.end() :]
    return [
        (weight * probability, variant)
        for weight, part in ((share, inside), (1 - share, ""))
        for probability, variant in _variants(before + part + after)
    ]


def is_category(token: str) -> bool:
    """Whether a token of a rule is a category (else it is a word)."""
    return token[0].isupper()


def _alternatives():
    """(left side, number, weight, right side) for every instance of every rule.

    Instances of one variant (one choice of the optional parts) of an alternative have one number.
    """
    number = 0
    for line in RULES.replace("\n    |", " |").splitlines():
        if not line or line.startswith("#"):
            continue
        left, _, right = line.partition(" -> ")
        for alternative in right.split(" | "):
            body, _, weight = alternative.partition(" @")
            for share, variant in _variants(body.strip()):
                number += 1
                for values in instances(f"{left} {variant}"):
                    yield (
                        substitute(left, values),
                        number,
                        float(weight or 1) * share,
                        tuple(substitute(variant, values).split()),
                    )


def _productive(rules: dict) -> set[str]:
    """Symbols from which a sequence of words can be derived."""
    waiting: dict[str, list] = {}
    missing, done, agenda = {}, set(), [*LEXICON]
    for left, alternatives in rules.items():
        for index, (_, _, right) in enumerate(alternatives):
            needs = {token for token in right if is_category(token)}
            missing[left, index] = len(needs)
            for token in needs:
                waiting.setdefault(token, []).append((left, index))
            if not needs:
                agenda.append(left)
    while agenda:
        symbol = agenda.pop()
        if symbol in done:
            continue
        done.add(symbol)
        for key in waiting.get(symbol, ()):
            missing[key] -= 1
            if not missing[key]:
                agenda.append(key[0])
    return done


@lru_cache(maxsize=1)
def compiled() -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """{category: [(probability, right side)]} of every phrasal category reachable from `Root`.

    Lexical categories are the keys of `LEXICON` and have no entry here.
    """
    rules: dict[str, list] = {}
    for left, number, weight, right in _alternatives():
        rules.setdefault(left, []).append((number, weight, right))
    good = _productive(rules)
    result, agenda = {}, ["Root"]
    while agenda:
        left = agenda.pop()
        if left in result or left in LEXICON:
            continue
        kept = [rule for rule in rules[left] if all(t in good for t in rule[2] if is_category(t))]
        result[left] = _normalised(kept)
        agenda.extend(token for _, right in result[left] for token in right if is_category(token))
    return result


def _normalised(rules: list) -> list[tuple[float, tuple[str, ...]]]:
    """Probabilities: the instances of one alternative share its weight, equal right sides are merged."""
    count = Counter(number for number, _, _ in rules)
    merged: dict[tuple[str, ...], float] = {}
    for number, weight, right in rules:
        merged[right] = merged.get(right, 0.0) + weight / count[number]
    total = sum(merged.values())
    return [(weight / total, right) for right, weight in merged.items()]
