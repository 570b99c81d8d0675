"""Pre-train a model, from scratch or from a checkpoint; resumes a killed run."""

from pathlib import Path

from _job import checkpoint, device, job

with job(snakemake):
    from masklab.config.schema import Dictionary, Encoder, Model, Objective
    from masklab.training.launch import launch
    from masklab.training.run import Run

    params, files = snakemake.params.config, snakemake.input
    folder = {name: Path(path).parent for name, path in files.items() if name != "tasks"}
    objective = Objective(params["objective"])
    launch(
        Run(
            name=snakemake.wildcards.recipe,
            replicate=int(snakemake.wildcards.replicate),
            phase=params["phase"],
            seed=params["seed"],
            model=Model(**params["model"]),
            encoder=Encoder(**params["encoder"]),
            objective=objective,
            tokens=folder["tokens"],
            tokenizer=folder["tokenizer"],
            output=Path(snakemake.output.manifest).parent,
            state=Path(snakemake.params.state),
            init=checkpoint(files.init, params["model"]["init"]) if params["model"]["init"] else None,
            dictionary=folder.get("dictionary"),
            dictionary_config=Dictionary(**params["dictionary"]) if params["dictionary"] else None,
            codes=folder.get("codes"),
            embeddings=folder.get("embeddings"),
            tasks={task: Path(path).parent for task, path in zip(objective.tasks, files.get("tasks", []), strict=True)},
            code=tuple(map(Path, snakemake.params.code.files)),
            device=device(params["device"]),
        ),
        log=snakemake.log[0],
    )
