"""What tables and figures say alike: letters of panels, how many replicates a value is over, what its interval is."""


def letter_of(index: int) -> str:
    """The letter of a panel, numbered from 0: a to z, then aa, ab and so on."""
    before, last = divmod(index, 26)
    return (letter_of(before - 1) if before else "") + chr(ord("a") + last)


def replicates(counts) -> str:
    """Numbers of replicates in words: "3 replicates", "2 to 3 replicates", "one replicate"; "" without any."""
    counts = sorted({int(count) for count in counts if count})
    if counts in ([], [1]):
        return "one replicate" if counts else ""
    return f"{counts[0]} replicates" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} replicates"


def interval(counts, items: bool = False, mean: str = "mean ± half the width of the 95 % interval") -> str:
    """What a mean and its interval are over; items: whether the interval covers the choice of test items too."""
    over = replicates(counts)
    if over == "one replicate":
        return "one replicate, no interval"
    return f"{mean} over {over}{' and test items' if items else ''}"


def training_sizes(sizes) -> str:
    """What a mean is over, in words: "training sizes 50, 200 and 1,000"; of one, "training size 50"."""
    *others, last = (f"{size:,}" for size in sorted(sizes))
    return f"training sizes {', '.join(others)} and {last}" if others else f"training size {last}"


def means_over_sizes(cells) -> list[str]:
    """Over which training sizes values are the mean, in which rows, and of which recipes, if these are not all.

    cells: (row, label, training sizes as the column `sizes` has them), any number of each.
    """
    by_row: dict[str, dict[str, None]] = {}
    cells, said = list(dict.fromkeys(cells)), []
    for row, _, sizes in cells:
        by_row.setdefault(row, {})[sizes] = None
    for sizes in dict.fromkeys(sizes for *_, sizes in cells if sizes):
        labels = {
            row: [label for own, label, those in cells if (own, those) == (row, sizes)] if len(every) > 1 else []
            for row, every in by_row.items()
            if sizes in every
        }
        if len(labels) == len(by_row) and len({*map(tuple, labels.values())}) == 1:
            where = " and ".join(next(iter(labels.values())))
        else:
            where = ", ".join(f"{row}: {' and '.join(own)}" if own else row for row, own in labels.items())
        over = training_sizes(map(int, sizes.split(", ")))
        said.append(("mean over " if ", " in sizes else "at ") + over + (f" ({where})" if where else ""))
    return said


def amount(counts, what: str) -> str:
    """Numbers with what they count: "300 test items", "100 to 300 test items"; "" without any."""
    counts = sorted({int(count) for count in counts if count})
    if not counts:
        return ""
    return f"{counts[0]:,} {what}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} {what}"
