# scores -> tables and figures; every one of them is also a target by its short name,
# e.g. `snakemake --cores all mlsm_figure3`.


rule table:
    input:
        scores=lambda w: paths.drawn_from(w.study, w.table),
        code=code("table.py"),
    output:
        multiext(R("tables/{study}/{table}"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/tables/{study}/{table}.log"),
    params:
        config=lambda w: paths.drawing(w.study),
    message:
        "table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/table.py"


rule figure:
    input:
        scores=lambda w: paths.drawn_from(w.study, w.figure),
        code=code("figure.py"),
    output:
        multiext(R("figures/{study}/{figure}"), pdf=".pdf", png=".png", parquet=".parquet", csv=".csv"),
    log:
        R("logs/figures/{study}/{figure}.log"),
    params:
        config=lambda w: paths.drawing(w.study),
    message:
        "figure {wildcards.figure} of {wildcards.study}"
    script:
        "../scripts/figure.py"


for study in settings.studies:

    rule:
        name:
            study.replace("-", "_")
        input:
            list(paths.figures(study).values()),
            list(paths.tables(study).values()),
        localrule: True

    for name, path in {**paths.figures(study), **paths.tables(study)}.items():

        rule:
            name:
                f"{study.replace('-', '_')}_{name}"
            input:
                path,
            localrule: True
