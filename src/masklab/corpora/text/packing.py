"""Which lines pass the filters, and lines joined to sequences of so many words."""


def filtered(lines, config) -> list[tuple[str, int]]:
    """(stripped line, words) of the lines that pass the filters; empty lines never do."""
    least, kept = max(config.min_words, 1), []
    for line in lines:
        text = line.rstrip()
        if text and len(text) >= config.min_characters and (words := len(text.split())) >= least:
            kept.append((text, words))
    return kept


class Packer:
    """Joins lines while they fit into `packed_words` words; a longer line is cut into pieces of so many.

    Under `unit: line` it gives back what it is given. held: what an earlier one had not given back yet.
    """

    def __init__(self, config, held=None):
        self.size = config.packed_words if config.unit == "packed" else None
        self.parts, self.count = held or ([], 0)

    @property
    def held(self) -> tuple[list[str], int]:
        """Lines of the sequence that is being packed and their words, JSON-able."""
        return self.parts, self.count

    def pack(self, lines, last: bool = False) -> list[tuple[str, int]]:
        """Sequences that are full with these lines [(text, words)]; after the last lines also what is left."""
        if self.size is None:
            return lines
        full = []
        for text, words in lines:
            pieces = [(text, words)]
            if words > self.size:
                parts, size = text.split(), self.size
                pieces = [(" ".join(parts[at : at + size]), min(size, words - at)) for at in range(0, words, size)]
            for piece, length in pieces:
                if self.count + length > self.size:
                    full.append((" ".join(self.parts), self.count))
                    self.parts, self.count = [], 0
                self.parts.append(piece)
                self.count += length
        if last and self.parts:
            full.append((" ".join(self.parts), self.count))
            self.parts, self.count = [], 0
        return full
