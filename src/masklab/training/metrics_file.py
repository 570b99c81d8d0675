"""The rows of metrics.parquet: means between rows, and a file that survives kill -9."""

import math
import time
from pathlib import Path

import pyarrow as pa

from masklab.files import read_table, write_table

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
        """The row; the next one starts empty."""
        masked = self.sums["masked"]
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
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        if names:
            columns = {name: [row.get(name, math.nan) for row in self.rows] for name in names}
            write_table(pa.table(columns), path or self.path)

    def flush(self) -> None:
        """Write, unless the time since the last write is less than 20 times what that took."""
        began = time.monotonic()
        if began - self.wrote >= 20 * self.took:
            self.write()
            self.wrote = time.monotonic()
            self.took = self.wrote - began

    def load(self, step: int) -> None:
        """Take over the file's rows up to `step`; later ones belong to updates that will be made again."""
        rows = read_table(self.path).to_pylist() if self.path.exists() else []
        self.rows = [row for row in rows if row["step"] <= step]
