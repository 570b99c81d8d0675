"""The rows of metrics.parquet: means between rows, and the file, written anew now and then."""

import contextlib
import math
import time
from pathlib import Path

import pyarrow as pa
import torch

from masklab.files import write_table

AS_LAST = ("step", "lr", "grad_norm")  # as at the last update of a row
SUMMED = ("tokens", "masked")


class Means:
    """One row for several updates: losses per masked token, tokens summed, the rest as at the last.

    sparse: names of values that not every update has; their mean is over the updates that do. Memory does not grow with
    the number of updates; `sums` and `last` are JSON-able and make up the state.
    """

    def __init__(self, sums: dict | None = None, last: dict | None = None, sparse=()):
        self.sums, self.last, self.sparse = sums or {}, last or {}, tuple(sparse)

    def add(self, row: dict) -> None:
        for key, value in row.items():
            if key in self.sparse:
                count = f"{key} updates"
                self.sums[key], self.sums[count] = self.sums.get(key, 0) + value, self.sums.get(count, 0) + 1
            elif key not in AS_LAST:
                self.sums[key] = self.sums.get(key, 0) + (value if key in SUMMED else value * row["masked"])
        self.last = row

    def take(self) -> dict:
        """The row; the next one starts empty. Losses are NaN where none of its updates has a masked token."""
        masked = self.sums["masked"] or math.nan
        row = {
            key: value if key in AS_LAST else self.sums[key] if key in SUMMED else self.sums[key] / masked
            for key, value in self.last.items()
            if key not in self.sparse
        }
        row |= {key: self.sums[key] / self.sums[f"{key} updates"] for key in self.sparse if key in self.sums}
        self.sums, self.last = {}, {}
        return row


class MetricsFile:
    """Rows that grow on disk while a run goes. A written file is complete: it is replaced, never changed."""

    def __init__(self, path):
        self.path, self.rows = Path(path), []
        self.wrote, self.took = 0.0, 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, row: dict) -> None:
        self.rows.append(row)

    def write(self, path=None) -> None:
        """Write all rows to `path` (None: the file itself), if there is any. What a row lacks is NaN."""
        if columns := self._table():
            write_table(pa.table(columns), path or self.path)

    def flush(self) -> None:
        """Write, unless the time since the last write is less than 20 times what that took."""
        began = time.monotonic()
        if began - self.wrote >= 20 * self.took:
            with contextlib.suppress(OSError):  # a full disk: the state has the rows too
                self.write()
            self.wrote = time.monotonic()
            self.took = self.wrote - began

    def columns(self) -> dict:
        """Name -> all rows' values as a tensor, int64 or float64; what a row lacks is NaN."""
        return {name: torch.tensor(values, dtype=_type(values)) for name, values in self._table().items()}

    def fill(self, columns: dict) -> None:
        """Take over the rows of `columns`."""
        lists = {name: column.tolist() for name, column in columns.items()}
        self.rows = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]

    def _table(self):
        names = dict.fromkeys(name for row in self.rows for name in row)
        return {name: [row.get(name, math.nan) for row in self.rows] for name in names}


def _type(values):
    return torch.int64 if all(isinstance(value, int) for value in values) else torch.float64
