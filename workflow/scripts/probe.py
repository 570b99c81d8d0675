"""Measure a model's checkpoints with one probe."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config.schema import entry
    from masklab.probes.checkpoints import measure_checkpoints

    params, names = snakemake.params.config, snakemake.wildcards
    models = Path(snakemake.params.models)
    files = dict(snakemake.input.items())
    measure_checkpoints(
        study=names.study,
        name=names.probe,
        probe=entry("probes", params["probe"]),
        model=names.model,
        checkpoints=[(step, models / f"step-{step}") for step in params["probe"]["steps"]],
        tasks={Path(path).parent.name: Path(path).parent for path in snakemake.input.tasks},
        output=Path(snakemake.output.scores),
        seed=params["seed"],
        device=device(params["device"]),
        state_folder=Path(snakemake.params.state),
        codes=Path(files["codes"]).parent if "codes" in files else None,
        tokens=Path(files["tokens"]).parent if "tokens" in files else None,
        conditionals=Path(files["conditionals"]).parent if "conditionals" in files else None,
    )
