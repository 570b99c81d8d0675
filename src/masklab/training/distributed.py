"""Data parallel training: what the processes of one run tell each other.

The batch of a step and its masks depend on (seed, step) alone; every process draws and computes its share of the
micro-batches. Gradients are summed, and divided by the masked tokens of the
whole batch: the loss is the mean over all of them, whatever the number of processes. All processes then make
the same update. Metrics, states and checkpoints are written by process 0.
"""

import contextlib
import os
from dataclasses import dataclass

import torch

from masklab.errors import MaskLabError, Passing


@dataclass(frozen=True)
class Ranks:
    """This process among the `size` processes of a run. With one process every method is free and does nothing."""

    rank: int = 0
    size: int = 1
    local: int = 0  # number on this machine, which is also the number of its GPU

    @property
    def main(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    @property
    def part(self) -> slice:
        """Which micro-batches of an update this process works on."""
        return slice(self.rank, None, self.size)

    def sum_(self, *tensors: torch.Tensor) -> None:
        """Add up each tensor over all processes, in place; every process gets the same bits."""
        if self.size > 1:
            with self._others():
                for tensor in tensors:
                    torch.distributed.all_reduce(tensor)

    def copy_(self, *tensors: torch.Tensor) -> None:
        """Give every process the tensors of process 0, in place."""
        if self.size > 1:
            with self._others():
                for tensor in tensors:
                    torch.distributed.broadcast(tensor, 0)

    def tell(self, values: list) -> list:
        """The values, any picklable objects, that process 0 passed."""
        values = list(values)
        if self.size > 1:
            with self._others():
                torch.distributed.broadcast_object_list(values, 0)
        return values

    @contextlib.contextmanager
    def _others(self):
        try:
            yield
        except RuntimeError as error:
            said = str(error)
            # nccl's are DistError, gloo's are known by the file that they name: [.../gloo/...:line] reason. advice
            lost = isinstance(error, torch.distributed.DistError) or "gloo" in said
            # Where there is no memory, it is this process's own GPU that had no room for the buffers.
            if not lost or "out of memory" in said.lower():
                raise
            reason = said.splitlines()[0].split("] ", 1)[-1].split(". ")[0]
            raise Passing(f"process {self.rank} of {self.size}: lost the others ({reason})") from None


@contextlib.contextmanager
def joined(processes: int, device: str):
    """The `Ranks` of this process, from the environment that torchrun sets.

    The processes talk through gloo on CPUs and nccl on GPUs. One process needs no environment.
    """
    if processes == 1:
        yield Ranks()
        return
    try:
        rank, size, local = (int(os.environ[key]) for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    except KeyError as error:
        raise MaskLabError(
            f"processes: {processes}, but {error.args[0]} is not set: start the run with"
            " `python -m masklab.training run.json`, which calls torchrun"
        ) from None
    if size != processes:
        raise MaskLabError(f"processes: the run was made for {processes}, but {size} were started")
    if device.startswith("cuda"):
        torch.cuda.set_device(local)
    torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield Ranks(rank, size, local)
    finally:
        torch.distributed.destroy_process_group()
