"""Signals that ask a run to stop, which all its processes then do at the same step."""

import os
import signal

import torch

from masklab.training.distributed import Ranks


class Interruption:
    """Whether a run has been asked to stop. As a context manager it catches SIGTERM and SIGINT.

    number: the signal that this process got, 0 for none; everywhere: whether any process had got one when they last
    agreed. torchrun's own death, and with it that of whoever waits for the run, counts as SIGHUP.
    """

    def __init__(self, ranks: Ranks, device: torch.device):
        self.ranks, self.device = ranks, device
        self.number, self.everywhere = 0, False

    def __enter__(self):
        self.parent = os.getppid()
        self.previous = {number: signal.signal(number, self.receive) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *error):
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def receive(self, number: int, frame=None) -> None:
        """Remember a signal until the processes agree; a signal handler."""
        self.number = number

    def agree(self) -> None:
        """Set `everywhere`; every process must call it at the same step."""
        number = torch.tensor(self.number, device=self.device)
        self.ranks.sum_(number)
        self.everywhere = bool(number)

    def watch_parent(self) -> None:
        """Take note if the process that started this one of several is gone."""
        if self.ranks.size > 1 and os.getppid() != self.parent:
            self.number = signal.SIGHUP
