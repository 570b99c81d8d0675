"""Figures on disk: PDF, PNG and the data drawn, without dates or versions, so that equal scores give equal bytes."""

import io
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
            drawn = io.BytesIO()  # a full disk would make matplotlib fail with something else than an OSError
            figure.savefig(drawn, format=kind, metadata=metadata)
            with atomic(f"{stem}.{kind}") as temporary:
                temporary.write_bytes(drawn.getbuffer())
            figure.set_layout_engine("none")  # the second is laid out as the first: laying out is a third of drawing
    write_parquet(data, f"{stem}.parquet")
    write_csv(data, f"{stem}.csv")
