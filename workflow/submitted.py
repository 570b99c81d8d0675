"""The config as it was at submission.

A Slurm job reads the config when it starts, which may be days after it was submitted. The Snakemake that submits
leaves its config in the environment, which jobs inherit; a job whose own part of the config is another by then stops.
"""

import base64
import json
import os
import zlib

VARIABLE = "MASKLAB_SUBMITTED"


def remember(config: dict) -> None:
    """Leave the config for the jobs of this Snakemake."""
    packed = zlib.compress(json.dumps(config, default=str).encode(), 9)
    os.environ[VARIABLE] = base64.b64encode(packed).decode()


def recall() -> dict | None:
    """The config of the Snakemake that submitted this job; None if nothing left one."""
    packed = os.environ.get(VARIABLE)
    return None if packed is None else json.loads(zlib.decompress(base64.b64decode(packed)))


def change(then, now, where: str = "") -> str | None:
    """`key: old value when submitted, new value now` of the first difference of two JSON-able values, or None."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            found = change(then.get(key), now.get(key), f"{where}.{key}".lstrip("."))
            if found:
                return found
        return None
    return None if then == now else f"{where or 'config'}: {then!r} when submitted, {now!r} now"
