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
    """What a mean is over, in words: "training sizes 50, 200 and 1,000"."""
    *others, last = (f"{size:,}" for size in sorted(sizes))
    return f"training sizes {', '.join(others)} and {last}"


def means_over_sizes(rows) -> list[str]:
    """Over which training sizes values are the mean, and in which rows, if these are not all.

    rows: (row, its training sizes as the column `sizes` has them, "" where there is but one), any number of each.
    """
    rows, said = list(dict.fromkeys(rows)), []
    for sizes in dict.fromkeys(sizes for _, sizes in rows if sizes):
        own = [row for row, those in rows if those == sizes]
        where = "" if len(own) == len(rows) else f" ({', '.join(own)})"
        said.append(f"mean over {training_sizes(map(int, sizes.split(', ')))}{where}")
    return said


def amount(counts, what: str) -> str:
    """Numbers with what they count: "300 test items", "100 to 300 test items"; "" without any."""
    counts = sorted({int(count) for count in counts if count})
    if not counts:
        return ""
    return f"{counts[0]:,} {what}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} {what}"
