"""The claims that users begin from, of `masklab new` and of docs/your-own-study.md, in studies of more recipes."""

import re
from pathlib import Path

from masklab.config import kinds, read
from masklab.new import new
from masklab.scores.view import View

ROOT = Path(__file__).parents[2]


def claims(config, study):
    """Name -> recipes of its effect, of all claims that a study's own file makes."""
    view = View.of(read(config), study)
    found = [claim for kind in kinds.known("claims").values() for claim in kind.make(view)]
    assert all(claim.needs(view) and claim.text for claim in found)
    return {claim.name: [reading.recipe for reading in claim.effect.readings()] for claim in found}


def test_recipes_of_one_length_do_not_take_each_others_place(tmp_path):
    """Of the new study: each pair that differs in its length alone has a claim."""
    new(tmp_path / "a")
    config = tmp_path / "a/config.yaml"
    assert claims(config, "mine") == {"long-over-short": ["long", "short"]}
    (tmp_path / "a/more.yaml").write_text("""
extends: config.yaml
models:
  small-short: {like: short, batch_size: 4}
  small-long: {like: long, batch_size: 4}
  again: {like: short}
studies:
  mine: {panels: {English: [small-short, short, small-long, long, again]}}
""")
    pairs = [("small-long", "small-short"), ("long", "short"), ("long", "again")]
    assert claims(tmp_path / "a/more.yaml", "mine") == {f"{a}-over-{b}": [a, b] for a, b in pairs}


def test_recipes_of_one_objective_do_not_take_each_others_place(tmp_path):
    """Of the page: each pair that differs in its objective alone has a claim."""
    page = (ROOT / "docs/your-own-study.md").read_text()
    (tmp_path / "spans.py").write_text("".join(re.findall(r"```python\n(.*?)```", page, re.S)))
    (tmp_path / "study.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.S)[1])
    assert claims(tmp_path / "study.yaml", "spans") == {"spans-over-tokens": ["spans", "tokens"]}
    (tmp_path / "more.yaml").write_text("""
extends: study.yaml
models:
  few-tokens: {like: tokens, batch_size: 8}
  few-spans: {like: spans, batch_size: 8}
studies:
  spans: {panels: {few: {tokens: few-tokens, spans: few-spans}}}
""")
    pairs = [("spans", "tokens"), ("few-spans", "few-tokens")]
    assert claims(tmp_path / "more.yaml", "spans") == {f"{a}-over-{b}": [a, b] for a, b in pairs}
