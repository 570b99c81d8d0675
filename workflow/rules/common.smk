# What every rule file uses: the checked configuration, paths, code dependencies, wildcards.
import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir, "src")))
sys.path.insert(0, str(Path(workflow.basedir, "workflow")))

from masklab.jobs import warm
from masklab.config import load, located, plain, read
from masklab.errors import MaskLabError
from cluster import Cluster
from imports import code
from paths import Paths, drawn_by, pattern
from submitted import recall, remember

# The files of --configfile and the values of --config are read by the library, which knows `extends`, families and so
# on; without a file it reads config.yaml. Jobs are started with the same ones and read them again.
try:
    given = workflow.config_settings
    settings = read(*given.configfiles, values=given.config_args or ())
    paths = Paths(settings)
    if workflow.is_main_process:
        remember(plain(settings.raw))
    elif (submitted := recall()) not in (None, plain(settings.raw)):
        paths = Paths(settings, Paths(load(submitted)))
    cluster = Cluster(settings)
    R = paths.result
    with located(settings):
        paths.check()
    paths.warn_missing_sources()
except MaskLabError as error:
    sys.exit(f"masklab: {error}")


wildcard_constraints:
    corpus=pattern(settings.corpora),
    tokenizer=pattern(settings.tokenizers),
    embeddings=pattern(settings.embeddings),
    causal=pattern(settings.causal_models),
    model=pattern(settings.models),
    dictionary=pattern(settings.dictionaries),
    task=pattern(settings.tasks),
    probe=pattern(settings.probes),
    study=pattern(settings.studies),
    sequences=r"\d+",
    positions="all|one",
    unit=r"[^/]+",
    figure=r"[a-z0-9_]+",
    table=r"[a-z0-9_]+",
