"""What nvidia-smi says of the GPUs of this machine, without torch."""

import shutil
import subprocess


def said(query: str, timeout: float = 20) -> list[str] | None:
    """A line of each GPU, in its order; none where the program is not there, None where it fails."""
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.strip() for line in answer.splitlines() if line.strip()]
