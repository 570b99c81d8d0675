# replicate of a recipe x probe x tasks -> scores, and outcomes item by item; all scores -> scores.parquet.


rule probe:
    input:
        unpack(needs("probe")),
    output:
        scores=R("scores/{probe}/{recipe}/r{replicate}/{unit}.parquet"),
        outcomes=R("scores/{probe}/{recipe}/r{replicate}/{unit}.items.parquet"),
    log:
        R("logs/scores/{probe}/{recipe}/r{replicate}/{unit}.log"),
    threads: settings.threads
    resources:
        **cluster.asks("probe"),
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=settings_of("probe"),
        code=code_of("probe"),
        sources=sources_of("probe"),
        state=R("state/scores/{probe}/{recipe}/r{replicate}/{unit}"),
    message:
        "probe {wildcards.probe} on {wildcards.recipe} r{wildcards.replicate} ({wildcards.unit})"
    script:
        "../scripts/probe.py"


rule scores:
    input:
        unpack(needs("scores")),
    output:
        parquet=R("scores.parquet"),
        csv=R("scores.csv"),
    log:
        R("logs/scores.log"),
    params:
        code=code_of("scores"),
        studies=lambda w: paths.study_scores(),
        made=R("made"),
        others=lambda w: other_studies(paths.root, settings.studies),
    message:
        "all scores in one table"
    script:
        "../scripts/scores.py"
