# figures, tables, claims, scores, facts -> README.md and report.html, which say what a run found. They are part of
# `all`; after a run that asked for less, `workflow/refresh.py` writes them.


rule pages:
    input:
        unpack(needs("pages")),
    output:
        html=report(
            R("report.html"),
            caption="../report/pages.rst",
            category="All studies",
            labels={"what": "Results", "shows": "Questions, verdicts, figures and tables on one page"},
        ),
        markdown=R("README.md"),
    log:
        R("logs/report.log"),
    params:
        config=settings_of("pages"),
        code=code_of("pages"),
        options=options,
    message:
        "the pages of results: README.md and report.html"
    script:
        "../scripts/pages.py"
