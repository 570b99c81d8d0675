"""Figures on disk: PDF, PNG and the data drawn, without dates or versions, so that equal scores give equal bytes."""

import logging

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from masklab.files import atomic, write_csv, write_parquet
from masklab.report.style import RC, families


def write_figure(figure: Figure, data: pd.DataFrame, stem) -> None:
    """Write `<stem>.pdf`, `.png`, `.parquet` and `.csv`, each atomically."""
    undated = {
        "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
    }
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells what it leaves out of every font
    with matplotlib.rc_context(RC | {"font.family": families()}):
        for kind, metadata in undated.items():
            with atomic(f"{stem}.{kind}") as temporary:
                figure.savefig(temporary, format=kind, metadata=metadata)
    write_parquet(data, f"{stem}.parquet")
    write_csv(data, f"{stem}.csv")
