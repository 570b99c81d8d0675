"""Code every token of a corpus under a dictionary."""

from pathlib import Path

from _job import checkpoint, device, job

with job(snakemake):
    from safetensors.torch import load_file

    from masklab.config.schema import Dictionary
    from masklab.files import read_json, sha256, write_json
    from masklab.jobs.progress import Progress
    from masklab.jobs.state import done, locked
    from masklab.models.checkpoint import load_checkpoint
    from masklab.sparse.states import code_corpus
    from masklab.tokens import TokenStore

    params, name = snakemake.params.config, snakemake.wildcards.dictionary
    config, place = Dictionary(**params["dictionary"]), device(params["device"])
    folder = checkpoint(snakemake.input.manifest, config.model)
    with locked(snakemake.params.state) as held:
        code_corpus(
            load_checkpoint(folder).to(place),
            TokenStore(Path(snakemake.input.tokens).parent, "train"),
            load_file(snakemake.input.dictionary)["D"].to(place),
            config.layer,
            config.penalty,
            config.solver,
            Path(snakemake.output.arrays[0]).parent,
            "train",
            place,
            Progress(f"codes {name}", "tokens", folder=snakemake.params.state),
            state_folder=Path(snakemake.params.state),
            fingerprint={
                "weights": sha256(folder / "model.safetensors"),
                "dictionary": sha256(snakemake.input.dictionary),
                "corpus": read_json(snakemake.input.tokens),
            },
        )
        hashes = {Path(file).name: sha256(file) for file in snakemake.output.arrays}
        facts = {"config": params["dictionary"], "seed": params["seed"], "sha256": hashes}
        write_json(facts, snakemake.output.facts)
        done(held)
