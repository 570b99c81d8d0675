"""Measure the checkpoints of one replicate of a recipe with one probe."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config import kinds
    from masklab.probes.checkpoints import measure_checkpoints

    params, names, files = snakemake.params.config, snakemake.wildcards, dict(snakemake.input.items())
    probe = kinds.find("probes", params["probe"]["kind"]).entity()(**params["probe"])
    folder = {
        name: Path(files[name]).parent for name in ("manifest", "codes", "tokens", "conditionals") if name in files
    }
    models = folder.pop("manifest")
    measure_checkpoints(
        name=names.probe,
        probe=probe,
        recipe=names.recipe,
        replicate=int(names.replicate),
        checkpoints=[(step, models / f"step-{step}") for step in probe.steps],
        tasks={name: Path(path).parent for name, path in zip(probe.tasks, files["tasks"], strict=True)},
        output=Path(snakemake.output.scores),
        seed=params["seed"],
        device=device(params["device"]),
        state_folder=Path(snakemake.params.state),
        **folder,
    )
