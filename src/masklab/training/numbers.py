"""The numbers of an update, on their way from the device that computes them."""

from collections.abc import Callable

import torch

LATE = 4  # updates of a GPU whose numbers may be unread while the next one is prepared


def lateness(device: torch.device) -> int:
    """How many updates may be under way before the numbers of the first one are read.

    None on a CPU, where reading is free. To read from a GPU is to wait for all that it was given to do, so that it
    idles while the next update is prepared.
    """
    return 0 if device.type == "cpu" else LATE


def sent(values: torch.Tensor) -> Callable[[], list]:
    """Begin to copy `values` to the host; the function that is returned waits for them."""
    if values.device.type != "cuda":
        found = values.tolist()
        return lambda: found
    host, arrived = values.to("cpu", non_blocking=True), torch.cuda.Event()  # into pinned memory
    arrived.record()

    def read():
        arrived.synchronize()
        return host.tolist()

    return read


class Numbers(dict):
    """The row of an update by column. What its device has not computed yet is waited for when it is first asked for."""

    def __init__(self, *values, **more):
        super().__init__(*values, **more)
        self.coming = []

    def expect(self, names: list[str], values: torch.Tensor) -> None:
        """Have `values` [n] under `names` once they are read."""
        self.coming.append((names, sent(values)))
        if values.device.type == "cpu":
            self.read()

    def read(self) -> "Numbers":
        """The same with all its numbers."""
        coming, self.coming = self.coming, []
        for names, values in coming:
            self.update(zip(names, values(), strict=True))
        return self

    def __missing__(self, name):
        if not self.coming:
            raise KeyError(name)
        return self.read()[name]
