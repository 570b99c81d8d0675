"""Batches drawn ahead of the updates that need them, by a thread of its own.

What a step reads and hides has an address (`masklab.rng`), so it does not matter who draws it, or when: weights are
those of a run that draws each batch when it needs it.
"""

import queue
import threading

import torch

DEPTH = 3  # batches that wait at most


def pays(device: torch.device) -> bool:
    """Whether batches are drawn ahead where a model computes on `device`: on a GPU.

    On a CPU the thread would take from the update's own threads the time that it saves them.
    """
    return device.type != "cpu"


class Ahead:
    """What `draw(step)` returns for first, first + 1, ..., last - 1, made in a thread that is `DEPTH` steps ahead.

    An error of `draw` is raised, as it is, by the `take` of its step.
    """

    def __init__(self, draw, first: int, last: int):
        self.draw, self.steps = draw, range(first, last)
        self.free, self.made, self.closed = threading.Semaphore(DEPTH), queue.SimpleQueue(), False
        self.latest = None  # (step, what was drawn)
        self.thread = threading.Thread(target=self._work, name="masklab-ahead", daemon=True)
        self.thread.start()

    def _work(self):
        for step in self.steps:
            self.free.acquire()
            if self.closed:
                return
            try:
                self.made.put((step, self.draw(step), None))
            except BaseException as error:  # it is the main thread's
                self.made.put((step, None, error))
                return

    def take(self, step: int):
        """What was drawn for `step`: the next one, or once more the latest one."""
        if self.latest is None or self.latest[0] != step:
            made, drawn, error = self.made.get()
            self.free.release()
            if error is not None:
                self.made.put((made, drawn, error))  # whoever asks again is told again
                raise error
            assert made == step, f"step {step} was asked for, {made} is next"
            self.latest = made, drawn
        return self.latest[1]

    def close(self) -> None:
        """End the thread; what it has drawn is forgotten."""
        self.closed = True
        self.free.release()
        self.thread.join()
