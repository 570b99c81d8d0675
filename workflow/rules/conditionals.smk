# tokens of a corpus with a known law -> exact conditionals of its test sequences, shared by all models' loss probes.


rule conditionals:
    input:
        unpack(needs("conditionals")),
    output:
        arrays=multiext(
            R("conditionals/{corpus}/{tokenizer}/{sequences}-{positions}/"),
            "rows.npy",
            "columns.npy",
            "entropies.npy",
            "probabilities.npy",
        ),
        facts=R("conditionals/{corpus}/{tokenizer}/{sequences}-{positions}/conditionals.json"),
    log:
        R("logs/conditionals/{corpus}/{tokenizer}/{sequences}-{positions}.log"),
    threads: settings.threads
    resources:
        **cluster.asks("conditionals", cluster.sort_of_conditionals),
        gpu=lambda w: cluster.gpus() if paths.is_causal(w.corpus) else None,
        cpus_per_task=settings.threads,
    params:
        config=settings_of("conditionals"),
        code=code_of("conditionals"),
        state=R("state/conditionals/{corpus}/{tokenizer}/{sequences}-{positions}"),
    message:
        "exact conditionals of {wildcards.corpus} ({wildcards.sequences} sequences, {wildcards.positions})"
    script:
        "../scripts/conditionals.py"
