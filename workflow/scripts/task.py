"""Build a task: one that is generated, one of files, or one of the words of a corpus, or of its law."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.config import kinds
    from masklab.tasks import build, write_task

    params, name = snakemake.params.config, snakemake.wildcards.task.partition("/")[0]
    task = kinds.find("tasks", params["task"]["kind"]).entity()(**params["task"])
    files = dict(snakemake.input.items())
    work = {"law_seed": params["law_seed"]} if "law_seed" in params else {}
    if "task" in files:
        work["task"] = Path(files["task"]).parent
    if "corpus" in files:
        work["corpus"] = Path(files["corpus"])
    write_task(Path(snakemake.output.facts).parent, *build(task, name, params["seed"], **work))
