"""How a probe of one model is cut into jobs (`split:`, `pack:`), and the names of the parts.

split: []            one job            all
split: [step]        one per step       step-600
split: [task]        one per task       cola
split: [step, task]  one per both       step-600.cola
with pack: 3         one per 3 tasks    step-600.cola+2
"""

from masklab.config import probe_steps


def units(probe, model) -> dict[str, tuple[list[int], list[str]]]:
    """Name of each part -> (steps, tasks) it measures, for one probe of one model."""
    steps = [[step] for step in probe_steps(probe, model)] if "step" in probe.split else [probe_steps(probe, model)]
    size = probe.pack if "task" in probe.split else len(probe.tasks)
    tasks = [list(probe.tasks[at : at + size]) for at in range(0, len(probe.tasks), size)] if probe.tasks else [[]]
    return {_name(probe, s, t): (s, t) for s in steps for t in tasks}


def _name(probe, steps, tasks):
    parts = [f"step-{steps[0]}"] * ("step" in probe.split)
    if "task" in probe.split and tasks:
        parts.append(tasks[0] + (f"+{len(tasks) - 1}" if len(tasks) > 1 else ""))
    return ".".join(parts) or "all"
