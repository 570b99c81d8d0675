"""Pre-train a model, from scratch or from a checkpoint; resumes a killed run."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config.schema import Dictionary, Encoder, Model, Objective
    from masklab.training.launch import launch
    from masklab.training.run import Run

    params, files = snakemake.params.config, snakemake.input
    folder = {name: Path(path).parent for name, path in files.items() if name not in ("code", "tasks")}
    objective = Objective(params["objective"])
    launch(
        Run(
            name=snakemake.wildcards.model,
            seed=params["seed"],
            model=Model(**params["model"]),
            encoder=Encoder(**params["encoder"]),
            objective=objective,
            tokens=folder["tokens"],
            tokenizer=folder["tokenizer"],
            output=Path(snakemake.output.manifest).parent,
            state=Path(snakemake.params.state),
            init=Path(snakemake.params.init) if snakemake.params.init else None,
            dictionary=folder.get("dictionary"),
            dictionary_config=Dictionary(**params["dictionary"]) if params["dictionary"] else None,
            codes=folder.get("codes"),
            embeddings=folder.get("embeddings"),
            tasks={task: Path(path).parent for task, path in zip(objective.tasks, files.get("tasks", []), strict=True)},
            replicate=params["replicate"],
            phase=params["phase"],
            device=device(params["device"]),
        ),
        log=snakemake.log[0],
    )
