"""Pre-train a model, from scratch or from a checkpoint, and its siblings beside it; resumes a killed run."""

from pathlib import Path

from _job import checkpoint, device, job, saved_after

with job(snakemake):
    from masklab.config.schema import Dictionary, Encoder, Model, Objective
    from masklab.jobs import stacks
    from masklab.training.launch import launch
    from masklab.training.run import Run

    def run_of(replicate, config, files, manifest, state):
        """The run of one replicate of this job's recipe."""
        folder = {name: Path(path).parent for name, path in files.items() if name not in ("tasks", "sources")}
        objective, model = Objective(config["objective"]), saved_after(Model(**config["model"]), snakemake)
        return Run(
            name=snakemake.wildcards.recipe,
            replicate=int(replicate),
            phase=config["phase"],
            seed=config["seed"],
            model=model,
            encoder=Encoder(**config["encoder"]),
            objective=objective,
            tokens=folder["tokens"],
            tokenizer=folder["tokenizer"],
            output=Path(manifest).parent,
            state=Path(state),
            **{key: checkpoint(files[key], config["model"][key]) for key in ("init", "teacher") if key in files},
            dictionary=folder.get("dictionary"),
            dictionary_config=Dictionary(**config["dictionary"]) if config["dictionary"] else None,
            codes=folder.get("codes"),
            embeddings=folder.get("embeddings"),
            tasks={task: Path(path).parent for task, path in zip(objective.tasks, files.get("tasks", []), strict=True)},
            code=tuple(map(Path, snakemake.params.code.files)),
            device=device(config["device"], model.here),
        )

    names, params = snakemake.wildcards, snakemake.params
    own = run_of(names.replicate, params.config, dict(snakemake.input.items()), snakemake.output.manifest, params.state)
    beside = [
        run_of(each["replicate"], each["config"], each["input"], each["manifest"], each["state"])
        for each in stacks.siblings(names.recipe, int(names.replicate))
    ]
    launch(own, log=snakemake.log[0], beside=beside)
