"""A user's own Snakefile that includes ours: its rules read what a run makes."""

import copy
import subprocess

import pandas as pd
import pytest
import running
import yaml
from test_symbolic import CONFIG

pytestmark = pytest.mark.workflow
RULE = """
include: "{checkout}/Snakefile"

rule rows:
    input: "results/own/scores.parquet"
    output: "rows.txt"
    run:
        import pandas
        print(len(pandas.read_parquet(input[0])), file=open(output[0], "w"))
"""


def test_rules_of_a_users_own_come_after_a_run(tmp_path):
    config = copy.deepcopy(CONFIG) | {"run": "own", "studies": {"dh": CONFIG["studies"]["dh"]}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"extends": []} | config))
    (tmp_path / "mine.smk").write_text(RULE.format(checkout=running.ROOT))
    own = [str(tmp_path / "mine.smk") if word.endswith("/Snakefile") else word for word in running.COMMAND]
    command = [*own, "rows", "--configfile", "mine.yaml", "--workflow-profile", str(running.ROOT / "profiles/default")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = len(pd.read_parquet(tmp_path / "results/own/scores.parquet"))
    assert int((tmp_path / "rows.txt").read_text()) == rows > 0
    assert "--snakefile" in (tmp_path / "results/own/README.md").read_text()
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "Nothing to be done" in done.stdout + done.stderr
