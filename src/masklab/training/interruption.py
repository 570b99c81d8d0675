"""Signals that ask a run to stop, which all its processes then do at the same step."""

import os
import signal
from collections import deque

import torch

from masklab.training.distributed import Ranks
from masklab.training.numbers import lateness, sent


class Interruption:
    """Whether a run has been asked to stop. As a context manager it catches SIGTERM and SIGINT.

    number: the signal that this process got, 0 for none; everywhere: whether any process had got one when they last
    agreed; due: whether a process then said that a state is to be saved. Processes on GPUs hear of each other
    `numbers.lateness` steps late, all at the same step. torchrun's own death, and with it that of whoever waits for the
    run, counts as SIGHUP.
    """

    def __init__(self, ranks: Ranks, device: torch.device):
        self.ranks, self.device = ranks, device
        self.number, self.everywhere, self.due = 0, False, False
        self.answers = deque()

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

    def agree(self, due: bool = False) -> None:
        """Set `everywhere` and `due`; every process must call it at the same step."""
        if self.ranks.size == 1:
            self.everywhere, self.due = bool(self.number), due
            return
        asked = torch.zeros(2, device=self.device)
        for place, value in zip(asked, (self.number, due), strict=True):
            place.fill_(value)
        self.ranks.sum_(asked)
        self.answers.append(sent(asked))
        if len(self.answers) > lateness(self.device):
            self.everywhere, self.due = map(bool, self.answers.popleft()())

    def watch_parent(self) -> None:
        """Take note if the process that started this one of several is gone."""
        if self.ranks.size > 1 and os.getppid() != self.parent:
            self.number = signal.SIGHUP
