# What every rule file uses: the checked configuration, places, what jobs read and are made from, wildcards.
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir, "src")))
sys.path.insert(0, str(Path(workflow.basedir, "workflow")))

from masklab.jobs import provenance, remaining, warm
from masklab.config import load, located, plain, read
from masklab.errors import MaskLabError
from cluster import SITE, Cluster, look_often
from paths import Paths, instances, pattern
from submitted import recall, recall_code, remember, remember_code

# The files of --configfile and the values of --config are read by the library, which knows `extends`, families and so
# on; without a file it reads config.yaml. Jobs are started with the same ones and read them again.
try:
    given = workflow.config_settings
    settings = read(*given.configfiles, values=given.config_args or ())
    paths = Paths(settings)
    if workflow.is_main_process:
        remember(plain(settings.raw))
    elif (submitted := recall()) is not None:
        paths = Paths(settings, Paths(load(submitted)), recall_code())
    site = workflow.resource_settings.default_resources or {}
    site = {name: str(site[name].raw) for name in SITE if name in site}
    cluster = Cluster(paths, site, workflow.is_main_process)
    R = paths.result
    needs, settings_of, code_of = paths.for_rules()
    with located(settings):
        paths.check()
    paths.warn_missing_sources()
    cluster.warn()
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
