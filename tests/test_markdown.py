"""Text escaped for Markdown is shown as it stands, in a line of its own and in a cell of a table."""

import html as entities
import random
import re

import pytest

from masklab.markdown import escaped, html

MARKS = [*"$_*`[]()<>&#|~\\!-+=.:1 ax\"'", "__", "http://x.y"]


def shown(text):
    found = re.fullmatch(r"<p>(.*)</p>", html(escaped(text)).strip(), re.DOTALL)
    return found and found[1]


def in_a_cell(text):
    found = re.search(r"<td>x</td>\s*<td>(.*?)</td>", html(f"| a | b |\n| --- | --- |\n| x | {escaped(text)} |\n"))
    return found and found[1]


@pytest.mark.parametrize(
    "text", ["__init__", "___x__ y", "a_b", "a__b", "*a*", "1. a", "- a", "[a](b)", "a | b", "~~a~~", "$x_1$"]
)
def test_what_names_hold_is_shown_as_it_stands(text):
    assert entities.unescape(shown(text)) == entities.unescape(in_a_cell(text)) == text
    assert "<" not in shown(text) + in_a_cell(text)
    assert "$" not in escaped(text).replace("\\$", "")  # a formula on GitHub


def test_and_so_is_whatever_a_config_may_hold():
    rng = random.Random(0)
    for _ in range(5000):
        text = " ".join("".join(rng.choices(MARKS, k=rng.randint(1, 8))).split())
        for found in (shown(text), in_a_cell(text)) if text else ():
            assert found is not None and not re.search("<[a-z/]", found) and entities.unescape(found) == text
