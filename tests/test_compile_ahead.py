"""What is compiled ahead is what jobs need: they compile nothing more."""

import os
import subprocess
import sys

import pytest

AHEAD = "import sys; from masklab import compile_ahead; sys.exit(compile_ahead.main())"
JOBS = """
import torch
from masklab.config.schema import Grammar
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import sample
from masklab.corpora.pcfg.span_scores import span_scores
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso

rules = draw_rules(Grammar(), 2)
law, (sequences, lengths) = Law(rules), sample(rules, 60, 2, min_length=2, max_length=20)
law.conditionals(sequences, lengths, threads=2)
law.conditionals_at(sequences, lengths, [3, 1, 3], [0, 1, 1])
for reading in ("marginal", "inside", "outside"):
    span_scores(law, sequences, lengths, 4, reading)
x = torch.nn.functional.normalize(torch.randn(500, 32))
dictionary = learn(x, atoms=100, penalty=0.05, iterations=5, batch_size=50)
lasso(x, dictionary, 0.1, only=torch.arange(500) % 3 == 0)

from masklab.models.stacked.masked import StackedMaskedLM
from masklab.models.stacked.parameters import StackedParameters

StackedParameters({"word": torch.ones(4, 32)}, 2, "word").step(0.1)
"""


def compiled(folder) -> set[str]:
    return {file.name for file in folder.rglob("*.nbc")}


@pytest.mark.slow
def test_jobs_compile_nothing_more(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", AHEAD], env=environment, check=True)
    ahead = compiled(tmp_path)
    assert len(ahead) > 30
    subprocess.run([sys.executable, "-c", JOBS], env=environment, check=True)
    assert compiled(tmp_path) == ahead
