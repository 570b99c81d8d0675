"""A WordNet of a few senses, written as a data folder of NLTK.

write(root, [("n", "film movie"), ("v", "see watch")], {"verb": "saw see\\nseen see\\n"})
"""

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
WIDTH = 300  # bytes of a line, so that offsets are known
LISTS = ("noun", "verb", "adj", "adv")


def write(root, senses, irregular=None):
    """Write the database of `senses` (part of speech, words) and of irregular forms; the folder `root`."""
    folder = root / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for part, name in FILES.items():
        own = [words.split() for kind, words in senses if kind == part]
        lines, index = [], {}
        for number, words in enumerate(own):
            said = " ".join(f"{word} 0" for word in words)
            frames = " 01 + 08 00" if part == "v" else ""
            line = f"{WIDTH * number:08d} 03 {part} {len(words):02x} {said} 000{frames} | of {words[0]}"
            lines.append(line.ljust(WIDTH - 1) + "\n")
            for word in words:
                index.setdefault(word, []).append(WIDTH * number)
        (folder / f"data.{name}").write_text("".join(lines))
        (folder / f"index.{name}").write_text(
            "".join(
                f"{word} {part} {len(at)} 0 {len(at)} 0 {' '.join(f'{offset:08d}' for offset in at)}\n"
                for word, at in sorted(index.items())
            )
        )
    (folder / "lexnames").write_text("".join(f"{at:02d}\tnoun.x\t1\n" for at in range(4)))
    for name in LISTS:
        (folder / f"{name}.exc").write_text((irregular or {}).get(name, ""))
    for name in ("index.sense", "cntlist.rev"):
        (folder / name).write_text("")
    return root
