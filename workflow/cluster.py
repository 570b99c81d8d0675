"""What a job asks a cluster for, from the config; None: no such request.

Partitions, memory and time stand in slurm/profile.yaml.
"""

import shutil


class Cluster:
    """Requests of jobs under one configuration, as the slurm executor of Snakemake reads them."""

    def __init__(self, config, local: bool = True):
        self.on_gpu, self.local = config.device != "cpu", local

    def planned_device(self) -> str:
        """Entry of the plan's assumptions that comes nearest to what computes here."""
        return "h100" if self.on_gpu and (not self.local or shutil.which("nvidia-smi")) else "cpu"

    def gpus(self, model=None) -> int | None:
        """GPUs of a job on one node: one for each process of a model, one of anything else that computes."""
        if not self.on_gpu or (model is not None and model.nodes > 1):
            return None
        return 1 if model is None else model.processes

    def gpus_of_each_node(self, model) -> str | None:
        """The same for a model on several nodes."""
        return f"gpu:{model.here}" if self.on_gpu and model.nodes > 1 else None

    def tasks(self, model) -> int | None:
        """One launcher on each node."""
        return model.nodes if model.nodes > 1 else None
