"""Grammars from rule files: one rule per line, `LHS RHS.. probability` (the form of the authors' rule_deep_mlm.txt).

Two symbols on the right side are symbols; one is a symbol if it has rules of its own, else a word. The first line's
left side is the start symbol, which alone may be rewritten to one symbol: these rules are the distribution over roots.
"""

import math
from pathlib import Path

from masklab.corpora.pcfg.rules import Rules, make_rules
from masklab.errors import MaskLabError


def read_rules(file) -> Rules:
    """Rules of a file; MaskLabError names file and row of bad input."""
    path = Path(file).expanduser()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MaskLabError(f"{path}: cannot be read as text: {error}") from None
    return parse_rules(text, str(path))


def parse_rules(text: str, where: str, known=()) -> Rules:
    """Rules of the lines of a rule file; empty lines are skipped, equal rules summed, probabilities renormalised.

    known: words that come first, in this order, whichever the lines name first.
    """
    rows = [(k, line.split()) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not rows:
        raise MaskLabError(f"{where}: no rules")
    symbols = {name: k for k, name in enumerate(dict.fromkeys(fields[0] for _, fields in rows))}
    first, words = rows[0][1][0], {word: number for number, word in enumerate(known)}
    start, binary, lexical = {}, [], []
    for number, fields in rows:
        left, right, weight = _row(fields, f"{where}: row {number}")
        unknown = [name for name in right if name not in symbols]
        if first in right:
            raise MaskLabError(f"{where}: row {number}: the start symbol {first!r} stands on a right side")
        if len(right) == 2:
            if unknown:
                raise MaskLabError(f"{where}: row {number}: {unknown[0]!r} has no rules; only single words may")
            binary.append((symbols[left], *(symbols[name] for name in right), weight))
        elif unknown:
            lexical.append((symbols[left], words.setdefault(right[0], len(words)), weight))
        elif left == first:
            start[symbols[right[0]]] = start.get(symbols[right[0]], 0.0) + weight
        else:
            raise MaskLabError(
                f"{where}: row {number}: {left} -> {right[0]}: only the start symbol {first!r} may become one symbol"
            )
    return _without_unary(list(symbols), list(words), start, binary, lexical, where)


def _row(fields, where):
    if not 3 <= len(fields) <= 4:
        raise MaskLabError(
            f"{where}: {len(fields)} fields; a rule is 'LHS RHS probability' or 'LHS RHS RHS probability'"
        )
    try:
        weight = float(fields[-1])
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise MaskLabError(f"{where}: {fields[-1]!r} is not a probability")
    return fields[0], fields[1:-1], weight


def _without_unary(names, words, start, binary, lexical, where):
    """The start symbol (number 0) is a root itself with its own rules' weight, and is dropped if it has none."""
    of_start = sum(row[-1] for row in [*binary, *lexical] if row[0] == 0)
    if of_start > 0:
        start = {0: of_start, **start}
    else:
        if not sum(start.values()) > 0:
            raise MaskLabError(f"{where}: every rule of the start symbol {names[0]!r} has probability 0")
        names, start = names[1:], {symbol - 1: weight for symbol, weight in start.items()}
        binary = [(a - 1, b - 1, c - 1, weight) for a, b, c, weight in binary if a]
        lexical = [(a - 1, word, weight) for a, word, weight in lexical if a]
    return make_rules(names, words, start, binary, lexical, where)


def write_rules(rules: Rules) -> str:
    """The lines of a rule file that is read as these rules, up to the order of symbols and words."""
    root = "ROOT"
    while root in {*rules.names, *rules.words}:
        root += "_"
    lines = [f"{root} {rules.names[s]} {p!r}" for s, p in enumerate(rules.start.tolist()) if p > 0]
    for (a, b, c), p in zip(rules.binary.tolist(), rules.binary_probabilities.tolist(), strict=True):
        lines.append(f"{rules.names[a]} {rules.names[b]} {rules.names[c]} {p!r}")
    for (a, word), p in zip(rules.lexical.tolist(), rules.lexical_probabilities.tolist(), strict=True):
        lines.append(f"{rules.names[a]} {rules.words[word]} {p!r}")
    return "\n".join(lines) + "\n"
