"""The codes of a whole corpus on disk: compressed sparse rows, read by memory map."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masklab.errors import MaskLabError
from masklab.files import atomic
from masklab.sparse.targets import Codes, pad

POSITIONS = "positions"
PARTS = ("indices", "values", "indptr")  # indptr comes last: where it lies, the others are complete


def write_codes(folder, split: str, blocks: Iterable[Codes], atoms: int, positions=None) -> dict:
    """Write blocks of codes, one after another, to `<split>.{indptr,indices,values}.npy`; returns rows and entries.

    indptr int64, indices uint16 (int32 from 65,536 atoms), values float32. Memory holds one block and indptr.
    positions: tokens whose codes these are, ascending [rows], written to `<split>.positions.npy`; None: all tokens.
    """
    folder = Path(folder)
    dtypes = {"indices": np.dtype(np.uint16 if atoms < 65536 else np.int32), "values": np.dtype(np.float32)}
    indptr, entries = [np.zeros(1, np.int64)], 0
    with ExitStack() as stack:
        paths = {part: stack.enter_context(atomic(folder / f"{split}.{part}.npy")) for part in reversed(PARTS)}
        if positions is not None:
            with open(stack.enter_context(atomic(folder / f"{split}.{POSITIONS}.npy")), "wb") as file:
                np.save(file, positions.astype(np.int64))
        with ExitStack() as opened:
            files = {part: opened.enter_context(open(paths[part], "wb")) for part in dtypes}
            for part, dtype in dtypes.items():
                _write_header(files[part], dtype, 0)
            for block in blocks:
                for part, dtype in dtypes.items():
                    getattr(block, part).cpu().numpy().astype(dtype, copy=False).tofile(files[part])
                indptr.append(entries + block.indptr[1:].cpu().numpy())
                entries += len(block.indices)
            indptr = np.concatenate(indptr)
            for part, dtype in dtypes.items():
                files[part].seek(0)
                _write_header(files[part], dtype, entries)
        with open(paths["indptr"], "wb") as file:
            np.save(file, indptr)
    return {"rows": len(indptr) - 1, "entries": entries}


def _write_header(file, dtype, count):
    # the size of the header does not depend on the count, so that it can be filled in afterwards
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, description)


class CodeStore:
    """The codes of one split: row p is the code of the token at flat position p of the token store.

    `indptr`, `indices`, `values` are memory maps; values are the raw lasso coefficients. `positions` [rows]: the tokens
    that have a code, ascending, where only some have; row i is then the code of token positions[i]. None: all have.
    """

    def __init__(self, folder, split: str):
        paths = {part: Path(folder) / f"{split}.{part}.npy" for part in PARTS}
        for path in paths.values():
            if not path.is_file():
                raise MaskLabError(f"{path}: no such file")
        self.indptr, self.indices, self.values = (
            np.load(paths[part], mmap_mode="r") for part in ("indptr", "indices", "values")
        )
        for part in ("indices", "values"):
            if len(getattr(self, part)) != self.indptr[-1]:
                raise MaskLabError(f"{paths[part]}: {len(getattr(self, part))} entries, expected {self.indptr[-1]}")
        some = Path(folder) / f"{split}.{POSITIONS}.npy"
        self.positions = np.load(some, mmap_mode="r") if some.is_file() else None
        if self.positions is not None and len(self.positions) != len(self):
            raise MaskLabError(f"{some}: {len(self.positions)} positions for {len(self)} codes")

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def gather(self, positions: np.ndarray) -> tuple[Tensor, Tensor]:
        """Targets at flat positions [N] (any order, repeats allowed): (indices [N, m], values [N, m]) on the CPU.

        L1-normalised and padded, see `masklab.sparse.targets.pad`.

        Raises:
            MaskLabError: a token has no code.
        """
        rows = self._rows(np.asarray(positions))
        starts = self.indptr[rows]
        counts = self.indptr[rows + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        places = np.repeat(starts - ends + counts, counts) + np.arange(total)
        return pad(
            torch.from_numpy(counts),
            torch.from_numpy(self.indices[places].astype(np.int64)),
            torch.from_numpy(np.ascontiguousarray(self.values[places])),
        )

    def _rows(self, positions):
        """Rows of the codes of tokens."""
        if self.positions is None:
            return positions
        rows = np.searchsorted(self.positions, positions)
        known = self.positions[np.minimum(rows, len(self) - 1)] if len(self) else np.full(len(rows), -1)
        missing = np.flatnonzero(known != positions)
        if len(missing):
            raise MaskLabError(f"codes: token {positions[missing[0]]} has none: they were made for other masks")
        return rows
