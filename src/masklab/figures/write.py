"""Figures on disk: PDF, PNG and the data drawn, without dates or versions, so that equal scores give equal bytes."""

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from masklab.figures.style import RC
from masklab.files import atomic, write_csv, write_parquet


def write_figure(figure: Figure, data: pd.DataFrame, stem) -> None:
    """Write `<stem>.pdf`, `.png`, `.parquet` and `.csv`, each atomically."""
    undated = {
        "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
    }
    with matplotlib.rc_context(RC):
        for kind, metadata in undated.items():
            with atomic(f"{stem}.{kind}") as temporary:
                figure.savefig(temporary, format=kind, metadata=metadata)
    write_parquet(data, f"{stem}.parquet")
    write_csv(data, f"{stem}.csv")
