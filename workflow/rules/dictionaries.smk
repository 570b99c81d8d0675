# model@step -> dictionary of its hidden states -> sparse codes of its corpus.


rule dictionary:
    input:
        unpack(lambda w: paths.dictionary_inputs(w.dictionary)),
        code=code("dictionary.py"),
    output:
        dictionary=R("dictionaries/{dictionary}/dictionary.safetensors"),
        facts=R("dictionaries/{dictionary}/dictionary.json"),
    log:
        R("logs/dictionaries/{dictionary}.log"),
    threads: settings.threads
    resources:
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=lambda w: paths.dictionary(w.dictionary),
        checkpoint=lambda w: paths.checkpoint(settings.dictionaries[w.dictionary].model),
        state=R("state/dictionaries/{dictionary}"),
    message:
        "dictionary {wildcards.dictionary}"
    script:
        "../scripts/dictionary.py"


rule codes:
    input:
        unpack(lambda w: paths.dictionary_inputs(w.dictionary)),
        dictionary=R("dictionaries/{dictionary}/dictionary.safetensors"),
        code=code("codes.py"),
    output:
        arrays=multiext(
            R("codes/{dictionary}/"),
            "train.indptr.npy",
            "train.indices.npy",
            "train.values.npy",
        ),
        facts=R("codes/{dictionary}/codes.json"),
    log:
        R("logs/codes/{dictionary}.log"),
    threads: settings.threads
    resources:
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=lambda w: paths.dictionary(w.dictionary),
        checkpoint=lambda w: paths.checkpoint(settings.dictionaries[w.dictionary].model),
        state=R("state/codes/{dictionary}"),
    message:
        "codes of the corpus under dictionary {wildcards.dictionary}"
    script:
        "../scripts/codes.py"
