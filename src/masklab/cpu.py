"""What this machine's processor says of itself: its maker, and what it has instructions for."""

import functools
from pathlib import Path


@functools.cache
def features() -> frozenset[str]:
    """The maker and the instructions, as Linux names them ("AuthenticAMD", "avx512f"); nothing on other systems."""
    try:
        known = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return frozenset()
    lines = [line.partition(":") for line in known.partition("\n\n")[0].splitlines()]
    named = {name.strip(): value for name, _, value in lines}
    return frozenset(f"{named.get('vendor_id', '')} {named.get('flags', '')}".split())
