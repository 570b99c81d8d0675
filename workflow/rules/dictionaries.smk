# recipe@step -> dictionary of its hidden states -> sparse codes of its corpus, or of those
# tokens that the masks of a recipe will hide; replicate k of each from replicate k.


rule dictionary:
    input:
        unpack(needs("dictionary")),
    output:
        dictionary=R("dictionaries/{dictionary}/r{replicate}/dictionary.safetensors"),
        facts=R("dictionaries/{dictionary}/r{replicate}/dictionary.json"),
    log:
        R("logs/dictionaries/{dictionary}/r{replicate}.log"),
    priority: BEFORE_PRETRAINING
    threads: settings.threads
    resources:
        **cluster.asks("dictionary"),
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("dictionary"),
        code=code_of("dictionary"),
        state=R("state/dictionaries/{dictionary}/r{replicate}"),
    message:
        "dictionary {wildcards.dictionary} r{wildcards.replicate}"
    script:
        "../scripts/dictionary.py"


rule codes:
    input:
        unpack(needs("codes")),
    output:
        arrays=multiext(
            R("codes/{dictionary}/r{replicate}/"),
            "train.indptr.npy",
            "train.indices.npy",
            "train.values.npy",
        ),
        facts=R("codes/{dictionary}/r{replicate}/codes.json"),
    log:
        R("logs/codes/{dictionary}/r{replicate}.log"),
    priority: BEFORE_PRETRAINING
    threads: settings.threads
    resources:
        **cluster.asks("codes"),
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("codes"),
        code=code_of("codes"),
        state=R("state/codes/{dictionary}/r{replicate}"),
    message:
        "codes of the corpus under dictionary {wildcards.dictionary} r{wildcards.replicate}"
    script:
        "../scripts/codes.py"


rule masked_codes:
    input:
        unpack(needs("masked_codes")),
    output:
        arrays=multiext(
            R("codes/{dictionary}/{masks}/r{replicate}/"),
            "train.indptr.npy",
            "train.indices.npy",
            "train.values.npy",
            "train.positions.npy",
        ),
        facts=R("codes/{dictionary}/{masks}/r{replicate}/codes.json"),
    log:
        R("logs/codes/{dictionary}/{masks}/r{replicate}.log"),
    priority: BEFORE_PRETRAINING
    threads: settings.threads
    resources:
        **cluster.asks("masked_codes"),
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("masked_codes"),
        code=code_of("masked_codes"),
        sources=sources_of("masked_codes"),
        state=R("state/codes/{dictionary}/{masks}/r{replicate}"),
    message:
        "codes of what is hidden, under dictionary {wildcards.dictionary} r{wildcards.replicate}"
    script:
        "../scripts/masked_codes.py"


rule dictionary_page:
    input:
        unpack(needs("dictionary_page")),
    output:
        page=R("dictionaries/{dictionary}/index.html"),
        table=R("dictionaries/{dictionary}/properties.parquet"),
        csv=R("dictionaries/{dictionary}/properties.csv"),
    log:
        R("logs/dictionaries/{dictionary}.log"),
    threads: settings.threads
    resources:
        **cluster.asks("dictionary_page"),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("dictionary_page"),
        code=code_of("dictionary_page"),
        sources=sources_of("dictionary_page"),
    message:
        "page of dictionary {wildcards.dictionary}"
    script:
        "../scripts/dictionary_page.py"


rule dictionaries:
    input:
        [file for name in settings.dictionaries for file in paths.outputs("dictionary_page", dictionary=name)],
