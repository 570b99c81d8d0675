"""What the rules of the workflow say in their files, against what other parts take for granted."""

import re
from pathlib import Path

import pytest

from masklab.config import load
from masklab.jobs.store import FOLDERS
from masklab.plan.graph import checkout_paths

TEXT = "\n".join(file.read_text() for file in sorted(Path(__file__).parents[1].glob("workflow/rules/*.smk")))
RULES = dict(re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", TEXT, re.S | re.M))  # name -> what it says


@pytest.mark.parametrize("rule", FOLDERS)
def test_the_files_of_a_folder_are_those_that_its_rule_declares(rule):
    declared = re.search(r"    output:\n(.*?)\n    log:", RULES[rule], re.S)[1]
    files = [file for file in re.findall(r'"([^"]+)"', declared) if not file.endswith("/")]
    assert sorted(FOLDERS[rule]) == sorted(Path(file).name for file in files)


@pytest.mark.parametrize("rule", [rule for rule in checkout_paths(load({})).rules if rule not in FOLDERS])
def test_targets_ask_for_every_file_that_a_rule_declares(rule):
    """Else one that is gone does not come back."""
    kind = checkout_paths(load({})).rules[rule]
    declared = re.search(r"    output:\n(.*?)\n    log:", RULES[rule], re.S)[1]
    files = re.findall(r'R\("([^"]+)"', declared)
    if "multiext" in declared:
        files = [f"{files[0]}{end}" for end in re.findall(r'="(\.\w+)"', declared)]
    names = {name: f"{{{name}}}" for name in re.findall(r"\{(\w+)\}", kind.place)}
    assert sorted(kind.outputs(**names)) == sorted(f"results/{file}" for file in files)


def test_a_job_of_several_threads_asks_a_cluster_for_as_many_cpus():
    """`--cores all` cuts the threads of a job that is submitted to the cores of the machine that submits it."""
    threads = "    threads: settings.threads\n"
    several = [name for name, says in RULES.items() if threads in says]
    assert {"tokens", "dictionary", "dictionary_page", "probe"} <= set(several)
    assert [name for name in several if "cpus_per_task=settings.threads,\n" not in RULES[name]] == []
