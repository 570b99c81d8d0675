"""Build a task from the grammar or from user files."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.config.schema import entry
    from masklab.tasks import build, write_task

    params, name = snakemake.params.config, snakemake.wildcards.task
    task = entry("tasks", params["task"])
    made = dict(snakemake.input.items())
    other = {"task": Path(made["task"]).parent, "corpus": Path(made["corpus"])} if "task" in made else {}
    write_task(Path(snakemake.output.facts).parent, *build(task, name, params["seed"], **other))
