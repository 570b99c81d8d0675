# scores -> tables, figures and claims; every one of them is also a target by its short name,
# e.g. `snakemake --cores all mlsm_figure3`.


rule table:
    input:
        scores=lambda w: paths.drawn_from(w.study, w.table),
        code=lambda w: code("table.py", drawn_by(w.study, w.table)),
    output:
        multiext(R("tables/{study}/{table}"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/tables/{study}/{table}.log"),
    params:
        config=lambda w: paths.drawing(w.study, w.table),
    message:
        "table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/table.py"


rule figure:
    input:
        scores=lambda w: paths.drawn_from(w.study, w.figure),
        corpora=lambda w: paths.drawn_corpora(w.study, w.figure),
        code=lambda w: code("figure.py", drawn_by(w.study, w.figure)),
    output:
        multiext(R("figures/{study}/{figure}"), pdf=".pdf", png=".png", parquet=".parquet", csv=".csv"),
    log:
        R("logs/figures/{study}/{figure}.log"),
    params:
        config=lambda w: paths.drawing(w.study, w.figure),
    message:
        "figure {wildcards.figure} of {wildcards.study}"
    script:
        "../scripts/figure.py"


rule study_claims:
    input:
        scores=lambda w: paths.claimed_from(w.study),
        code=code("claims.py"),
    output:
        multiext(R("claims/{study}"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/claims/{study}.log"),
    params:
        config=lambda w: paths.claiming(w.study),
    message:
        "claims of {wildcards.study}"
    script:
        "../scripts/claims.py"


rule claims:
    input:
        claims=paths.all_claims(),
        code=code("all_claims.py"),
    output:
        multiext(R("claims"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/claims.log"),
    message:
        "all claims in one table"
    script:
        "../scripts/all_claims.py"


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
