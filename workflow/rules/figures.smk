# scores -> tables, figures and claims; every one of them is also a target by its short name,
# e.g. `snakemake --cores all mlsm_figure3`.


rule table:
    input:
        unpack(needs("table")),
    output:
        multiext(R("tables/{study}/{table}"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/tables/{study}/{table}.log"),
    params:
        config=settings_of("table"),
        code=code_of("table"),
    message:
        "table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/table.py"


rule figure:
    input:
        unpack(needs("figure")),
    output:
        multiext(R("figures/{study}/{figure}"), pdf=".pdf", png=".png", parquet=".parquet", csv=".csv"),
    log:
        R("logs/figures/{study}/{figure}.log"),
    params:
        config=settings_of("figure"),
        code=code_of("figure"),
    message:
        "figure {wildcards.figure} of {wildcards.study}"
    script:
        "../scripts/figure.py"


rule study_claims:
    input:
        unpack(needs("study_claims")),
    output:
        multiext(R("claims/{study}"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/claims/{study}.log"),
    params:
        config=settings_of("study_claims"),
        code=code_of("study_claims"),
    message:
        "claims of {wildcards.study}"
    script:
        "../scripts/claims.py"


rule claims:
    input:
        unpack(needs("claims")),
    output:
        multiext(R("claims"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/claims.log"),
    params:
        code=code_of("claims"),
        studies=list(settings.studies),
        made=R("made"),
    message:
        "all claims in one table"
    script:
        "../scripts/all_claims.py"


rule facts:
    input:
        unpack(needs("facts")),
    output:
        parquet=R("facts.parquet"),
        csv=R("facts.csv"),
    log:
        R("logs/facts.log"),
    params:
        config=settings_of("facts"),
        code=code_of("facts"),
        studies=list(settings.studies),
        made=R("made"),
    message:
        "facts of all recipes, tasks and corpora in one table"
    script:
        "../scripts/facts.py"


for study in settings.studies:

    rule:
        name:
            study
        input:
            list(paths.items(study).values()),
        localrule: True

    for name, path in paths.items(study).items():

        rule:
            name:
                f"{study}_{name}"
            input:
                path,
            localrule: True
