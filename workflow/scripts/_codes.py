"""What the scripts of codes share: the codes of a corpus under a dictionary, of all its tokens or of some."""

from pathlib import Path

from _job import checkpoint, device


def write(snakemake, tokens_of=None) -> None:
    """Write the codes that a job is asked for.

    tokens_of: a function from the token store to the tokens that are coded, [tokens] bool; None: all are.
    """
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
    store = TokenStore(Path(snakemake.input.tokens).parent, "train")
    with locked(snakemake.params.state) as held:
        only = None if tokens_of is None else tokens_of(store)
        counts = code_corpus(
            load_checkpoint(folder).to(place),
            store,
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
            only=only,
        )
        hashes = {Path(file).name: sha256(file) for file in snakemake.output.arrays}
        facts = {"config": params["dictionary"], "seed": params["seed"], "sha256": hashes}
        facts |= {"tokens": len(store.ids), "coded": counts["rows"], "entries": counts["entries"]}
        write_json(facts | {key: params[key] for key in ("masks",) if key in params}, snakemake.output.facts)
        done(held)
