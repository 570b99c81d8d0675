"""What computes on this machine, as an entry of the plan's assumptions."""

from functools import cache

from masklab.jobs import nvidia


def device_here(config, devices: dict) -> tuple[str, str]:
    """(entry of `devices` for this machine under a config, what that entry stands for in words).

    A GPU that `nvidia-smi` lists counts, unless the config says `device: cpu`: its entry is the one whose name is in
    the GPU's, else the first one of a GPU.
    """
    if config.device != "cpu" and (name := gpu()):
        words = name.lower().replace("-", " ").split()
        for entry, settings in devices.items():
            if settings["gpu"] and entry.lower() in words:
                return entry, f"this machine's {name}"
        entry = next(entry for entry, settings in devices.items() if settings["gpu"])
        return entry, f"in place of this machine's {name}, which has no entry"
    return next(entry for entry, settings in devices.items() if not settings["gpu"]), "this machine"


@cache
def gpu() -> str:
    """Name of the first GPU of this machine; "": it has none."""
    names = nvidia.said("name")
    return names[0] if names else ""
