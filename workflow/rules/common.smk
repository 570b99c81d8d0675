# What every rule file uses: the checked configuration, places, what jobs read and are made from, wildcards.
import sys
from pathlib import Path

# Not `basedir`, which is the folder of another Snakefile where one includes this one.
checkout = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
sys.path.insert(0, str(checkout / "src"))
sys.path.insert(0, str(checkout / "workflow"))

import inside_snakemake
import side_by_side
from masklab.jobs import gpus, provenance, queued, remaining, warm
from masklab.config import load, plain
from masklab.config.check_phrases import lacking
from masklab.config.masks import PATTERN as MASKS
from masklab.config.places import noted
from masklab.errors import MaskLabError
from masklab.jobs.code import leave_time
from masklab.pages.wording import options as options_of
from masklab.tasks import pair_lengths
from cluster import SITE, Cluster
from leftovers import CLAIMED, other_studies
from paths import Paths, instances, notices_of, opened, pattern
from refresh import refresh
from shared_work import install
from submitted import recall, recall_code, remember, remember_code
from watch import at_work, watch

# The files of --configfile and the values of --config are read by the library, which knows `extends`, families and so
# on; without a file it reads config.yaml. Jobs are started with the same ones and read them again.
try:
    if workflow.is_main_process:
        leave_time()
    given = workflow.config_settings
    paths = opened(given.configfiles, given.config_args or (), data=workflow.is_main_process)
    settings = paths.config
    if settings.device == "cpu":
        gpus.hide()
    if workflow.is_main_process:
        remember(plain(settings.raw))
        queued.leave_within()
    elif (submitted := recall()) is not None:
        paths = Paths(settings, Paths(load(submitted)), recall_code())
    options = options_of(workflow.main_snakefile, given.configfiles, given.config_args or ())
    site = workflow.resource_settings.default_resources or {}
    site = {name: str(site[name].raw) for name in SITE if name in site}
    cluster = Cluster(paths, site, workflow.is_main_process)
    R = paths.result
    needs, settings_of, code_of, sources_of = paths.for_rules()
    labels_of = paths.labels
    sys.stderr.write(notices_of(paths))
    cluster.warn()
    install(workflow, paths, options)
except MaskLabError as error:
    sys.exit(error.said)


# Of the jobs that are ready those start first that the long ones wait for, then the long ones themselves.
BEFORE_PRETRAINING, PRETRAINING = 2, 1


wildcard_constraints:
    corpus=instances(settings, "corpora"),
    tokenizer=instances(settings, "tokenizers"),
    causal=instances(settings, "causal_models"),
    task=instances(settings, "tasks"),
    embeddings=pattern(settings.embeddings),
    recipe=pattern(settings.models),
    dictionary=pattern(settings.dictionaries),
    masks=MASKS,
    replicate=r"[1-9]\d*",
    probe=pattern(settings.probes),
    unit=r"[^/]+(?<!\.items)",
    study=pattern(settings.studies),
    sequences=r"\d+",
    positions="all|one",
    figure=pattern({name for study in settings.studies.values() for name in study.figures}),
    table=pattern({name for study in settings.studies.values() for name in study.tables}),
