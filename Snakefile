# MaskLab: every study from corpora to figures. `snakemake --cores all` makes all of it;
# docs/targets.md lists the targets a person asks for. The way of the data: ARCHITECTURE.md.
from snakemake.utils import min_version

min_version("9.27.1")


# Only used with `--sdm apptainer`: the environment of envs/ in an image.
container: "docker://python:3.11-slim"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/tokenizers.smk"
include: "workflow/rules/embeddings.smk"
include: "workflow/rules/causal_models.smk"
include: "workflow/rules/conditionals.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/dictionaries.smk"
include: "workflow/rules/tasks.smk"
include: "workflow/rules/probes.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/pages.smk"


report: "workflow/report/run.rst"


onstart:
    inside_snakemake.calm(workflow)
    pending = list(workflow.dag.needrun_jobs())
    measured = {job.wildcards.probe for job in pending if job.rule.name == "probe"}
    if lacks := lacking(settings, measured):
        sys.exit("\n".join(f"masklab: {noted(line, settings.raw)}" for line in lacks))
    if workflow.is_main_process and (left := at_work()):
        sys.exit(left)
    if workflow.is_main_process:
        pair_lengths.leave(settings, {job.wildcards.task for job in pending if job.rule.name == "task"})
    if (
        len(pending) >= 10
        and not workflow.touch
        and workflow.local_exec
        and not workflow.deployment_settings.deployment_method
    ):
        warm.start(min(settings.threads, workflow.cores))
        inside_snakemake.run_scripts(warm.run)
    if workflow.local_exec and not workflow.touch and not workflow.deployment_settings.deployment_method:
        side_by_side.install(workflow, settings, pending)
    jobs = {workflow.dag.jobid(job): (job.rule.name, dict(job.wildcards.items())) for job in pending if job.log}
    remaining.expect(jobs, plain(settings.raw), cluster.planned_device())
    if not workflow.local_exec:
        paths.checkout.keep()
        watch(inside_snakemake.executor(workflow))
        remember_code(job.params.code for job in pending if "code" in job.params.keys())


# `snakemake --touch` says that artifacts are as good as made anew: records of jobs take it down.
onsuccess:
    if workflow.touch:
        for job in workflow.dag.jobs:
            params = dict(job.params.items())
            if "code" in params and all(Path(file).exists() for file in job.output):
                provenance.vouch(job.log[0], params.get("config"), params["code"], job.input)
    else:
        refresh(workflow.dag, paths, options)


onerror:
    refresh(workflow.dag, paths, options)


localrules:
    all,
    scores,
    facts,
    claims,
    study_claims,
    table,
    figure,
    pages,


rule all:
    default_target: True
    input:
        paths.everything(),
