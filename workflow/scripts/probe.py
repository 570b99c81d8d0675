"""Measure the checkpoints of a replicate with one probe."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config.schema import entry
    from masklab.probes.checkpoints import measure_checkpoints

    params, names = snakemake.params.config, snakemake.wildcards
    models = Path(snakemake.params.models)
    files = dict(snakemake.input.items())
    settings = params["probe"]
    measure_checkpoints(
        recipe=names.recipe,
        replicate=int(names.replicate),
        name=names.probe,
        probe=entry("probes", settings),
        checkpoints=[(step, models / f"step-{step}") for step in settings["steps"]],
        tasks={name: Path(file).parent for name, file in zip(settings["tasks"], snakemake.input.tasks, strict=True)},
        output=Path(snakemake.output.scores),
        seed=params["seed"],
        device=device(params["device"]),
        state_folder=Path(snakemake.params.state),
        codes=Path(files["codes"]).parent if "codes" in files else None,
        tokens=Path(files["tokens"]).parent if "tokens" in files else None,
        conditionals=Path(files["conditionals"]).parent if "conditionals" in files else None,
    )
