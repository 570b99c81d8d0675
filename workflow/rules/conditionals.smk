# tokens of a corpus with a known law -> exact conditionals of its test sequences, shared by all models' loss probes.


rule conditionals:
    input:
        tokens=R("tokens/{corpus}/{tokenizer}/meta.json"),
        code=code("conditionals.py"),
    output:
        arrays=multiext(
            R("conditionals/{corpus}/{tokenizer}/{sequences}-{positions}/"),
            "rows.npy",
            "columns.npy",
            "entropies.npy",
            "probabilities.npy",
        ),
    log:
        R("logs/conditionals/{corpus}/{tokenizer}/{sequences}-{positions}.log"),
    threads: settings.threads
    resources:
        cpus_per_task=settings.threads,
    params:
        config={"seed": settings.seed},
    message:
        "exact conditionals of {wildcards.corpus} ({wildcards.sequences} sequences, {wildcards.positions})"
    script:
        "../scripts/conditionals.py"
