# What every rule file uses: the checked configuration, places, what jobs read and are made from, wildcards.
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir, "src")))
sys.path.insert(0, str(Path(workflow.basedir, "workflow")))

from masklab.jobs import provenance, warm
from masklab.config import load
from masklab.errors import MaskLabError
from cluster import Cluster
from paths import Paths, instances, pattern
from submitted import recall, recall_code, remember, remember_code

try:
    settings = load(config)
    if workflow.is_main_process:
        remember(config)
        paths = Paths(settings)
    else:
        paths = Paths(settings, Paths(load(recall() or config)), recall_code())
    cluster = Cluster(settings)
    R = paths.result
    needs, settings_of, code_of = paths.for_rules()
    paths.check()
    paths.warn_missing_sources()
except MaskLabError as error:
    sys.exit(f"masklab: {error}")


wildcard_constraints:
    corpus=instances(settings, "corpora"),
    tokenizer=instances(settings, "tokenizers"),
    causal=instances(settings, "causal_models"),
    task=instances(settings, "tasks"),
    embeddings=pattern(settings.embeddings),
    recipe=pattern(settings.models),
    dictionary=pattern(settings.dictionaries),
    replicate=r"[1-9]\d*",
    probe=pattern(settings.probes),
    unit=r"[^/]+(?<!\.items)",
    study=pattern(settings.studies),
    sequences=r"\d+",
    positions="all|one",
    figure=r"[a-z0-9_]+",
    table=r"[a-z0-9_]+",
