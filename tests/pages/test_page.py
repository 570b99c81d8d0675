"""README.md and report.html of a folder of results: made from claims, tables and figures of known scores."""

import base64
import io
import json
import re
import shutil
import socket
from html.parser import HTMLParser

import pytest
from PIL import Image

import synthetic
from masklab.claims.claim_files import write_claims
from masklab.claims.summary import headlines
from masklab.claims.verdict import test_claims
from masklab.config import layered, load, plain
from masklab.errors import MaskLabError
from masklab.files import write_json
from masklab.markdown import html
from masklab.pages.outline import outline
from masklab.pages.wording import command, options, title
from masklab.pages.write import write
from masklab.report.cells import write_table
from masklab.report.figure_files import write_figure
from masklab.scores.view import View
from masklab.studies import caption, claims_of, find

RAW = plain(layered())
HOSTILE = "<script>alert(1)</script> | *so* `it` [is](http://evil) _said_ & done"


def config_of(**changes):
    """The default config with `mae` alone, some of its keys changed."""
    panels = {"English": RAW["studies"]["mae"]["panels"]["English"] | {"all stay": "mae-kept"}}
    own = {"figures": ["figure1b", "figure4"], "tables": ["table1"], "panels": panels}
    study = RAW["studies"]["mae"] | own | changes
    return load(RAW | {"studies": {"mae": study}})


def results(root, config, study="mae"):
    """Figures, tables and claims of a study, written as its jobs write them."""
    found, declared = synthetic.results(config, study), config.studies[study]
    for name in declared.figures:
        figure, data = find(study, declared, "figures", name).draw(found)
        write_figure(figure, data, root / "figures" / study / name)
    for name in declared.tables:
        item = find(study, declared, "tables", name)
        write_table(item.function()(found, item.choose(found.view)), root / "tables" / study / name)
    if declared.claims:
        claims = claims_of(study, declared, View.of(config, study))
        write_claims(test_claims(claims, found), root / "claims" / study)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of results with its pages."""
    config, root = config_of(), tmp_path_factory.mktemp("results")
    results(root, config)
    record = {
        "finished": True,
        "seconds": 600.0,
        "ended": 1.7e9,
        "host": socket.gethostname(),
        "versions": {"torch": "2"},
    }
    for at in range(3):
        write_json(record | {"ended": 1.7e9 + at}, root / f"made/models/m{at}.json")
    write_json({"finished": False}, root / "made/models/stopped.json")
    (root / "made/broken.json").write_text("{")
    (root / "made/models/recipe.json").mkdir()  # a recipe may be called so
    for file in ("scores.parquet", "scores.csv"):
        (root / file).touch()
    write(root, outline(config), options(configfiles=[root / "my config.yaml"]))
    return root


class Parsed(HTMLParser):
    """The tags of a page with their attributes, its visible text, and whether every tag is closed."""

    VOID = ("meta", "img", "br", "link", "input", "hr")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if "style" not in self.open else ""

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def page(root):
    return Parsed((root / "report.html").read_text())


def test_the_page_begins_with_what_was_run(made):
    text = " ".join(page(made).text.split())
    assert re.search(r"Results .*1 study .*Scale: toy\..*says nothing of the paper's results", text)
    assert "3 jobs" in text and "30 minutes of computing" in text and socket.gethostname() in text and "torch 2" in text
    assert RAW["studies"]["mae"]["question"] in text


def test_verdicts_are_counted_and_the_headlines_stand_first(made):
    import pandas as pd

    claims, text = pd.read_parquet(made / "claims/mae.parquet"), " ".join(page(made).text.split())
    counts = ", ".join(
        f"{(claims['verdict'] == v).sum()} {v}" for v in ("supported", "contradicted", "negligible", "inconclusive")
    )
    assert f"{counts}, " in text and f"of {len(claims)} claims" in text
    for headline in claims.loc[claims["headline"], "text"]:
        assert text.index(headline) < text.index("Figures")
    for verdict in ("supported", "untested"):
        assert f"{verdict}" in text and "What the verdicts mean" in text


def test_figures_lie_in_the_page_and_every_link_leads_to_a_file(made):
    parsed = page(made)
    images = parsed.all("img")
    assert [image["alt"].split(".")[0] for image in images] == ["Figure 1b", "Figure 4"]
    for image in images:
        data = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
        assert len(data) < 60_000
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (int(image["width"]), int(image["height"])) and picture.width == 880
    links = [link["href"] for link in parsed.all("a") if "docs/columns.md" not in link["href"]]
    assert len(links) > 12 and all(link.startswith("#") or (made / link).is_file() for link in links)
    anchors = {attributes.get("id") for _, attributes in parsed.tags}
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    assert not re.search(r"(src|href)=\"(https?:)?//", (made / "report.html").read_text()), "nothing from the network"


def test_every_part_says_the_command_that_makes_it(made):
    text, readme = page(made).text, (made / "README.md").read_text()
    for target in ("mae", "mae_figure1b", "mae_figure4", "mae_table1", "mae_claims"):
        said = command(target, options(configfiles=[made / "my config.yaml"]))
        assert said in text and said == f"snakemake --cores all {target} --configfile '{made}/my config.yaml'"
        assert target in html(readme)


def test_the_readme_shows_the_same_and_its_links_lead_to_files(made):
    readme = (made / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)\)", readme) + re.findall(r'(?:src|href)="([^"]+)"', readme)
    links = [link for link in links if not link.endswith("docs/columns.md")]
    assert len(links) > 12 and all((made / link).is_file() for link in links)
    rendered = html(readme)
    assert rendered.count("<table>") == 3 and RAW["studies"]["mae"]["question"] in readme


def test_a_figure_without_another_beside_it_has_an_empty_cell(made, tmp_path):
    """Its bar was escaped, and stood in the cell."""
    shutil.copytree(made / "figures", tmp_path / "figures")
    write(tmp_path, outline(config_of(figures=["figure4"], tables=[], claims=[])))
    lines = (tmp_path / "README.md").read_text().splitlines()
    row = lines[lines.index("| | |") + 2]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3 and row.endswith(" | |") and "\\|" not in row


def test_the_table_of_columns_is_linked(made):
    from masklab.pages.columns import FILES

    link = re.search(r"\]\(([^)]+docs/columns\.md)\)", (made / "README.md").read_text())[1]
    assert (made / link).resolve().is_file()
    assert all(name in page(made).text for _, (_, rows) in FILES.items() for name, _, _ in rows)


def test_hostile_text_is_shown_as_it_stands(made, tmp_path):
    words = {"title": HOSTILE, "question": HOSTILE, "scale": f"toy: {HOSTILE}"}
    shutil.copytree(made / "figures", tmp_path / "figures")
    write(tmp_path, outline(config_of(**words, tables=[], claims=[])))
    parsed = page(tmp_path)
    assert parsed.text.count(HOSTILE) >= 4 and not parsed.all("script") and not parsed.all("em")
    readme = (tmp_path / "README.md").read_text()
    shown = Parsed(f"<main>{html(readme)}</main>")
    assert shown.text.count(HOSTILE) >= 4 and not shown.all("script")
    assert not [link for link in shown.all("a") if "evil" in link["href"]]
    row = next(line for line in readme.splitlines() if line.startswith("| [mae]"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5, "a pipe begins no cell"


def test_what_was_not_made_says_how_to_make_it(made, tmp_path):
    shutil.copytree(made / "tables", tmp_path / "tables")
    write(tmp_path, outline(config_of()))
    text, readme = " ".join(page(tmp_path).text.split()), (tmp_path / "README.md").read_text()
    assert text.count("Not made yet") == 2 and "The claims are not tested yet" in text
    assert "No job of this folder has ended yet" in text and "No job" in readme
    assert "snakemake --cores all mae_figure4" in text and "Not tested yet" in readme
    assert not page(tmp_path).all("img") and "folder has nothing of" not in text


def test_a_study_of_which_nothing_was_made_stands_last_in_a_line(tmp_path):
    write(tmp_path, outline(config_of()))
    text, readme = " ".join(page(tmp_path).text.split()), (tmp_path / "README.md").read_text()
    for shown in (text, readme):
        assert "Nothing was made yet" in shown and shown.count(RAW["studies"]["mae"]["question"]) == 1
        assert shown.index("Studies that this folder has nothing of") < shown.index("snakemake --cores all mae")


def test_a_study_of_another_config_stays_on_the_page(made, tmp_path):
    for part in ("figures", "tables", "claims", "made"):
        shutil.copytree(made / part, tmp_path / part)
    write_json({"mae": {"title": "A title of old", "question": ""}}, tmp_path / "state/pages.json")
    other = outline(config_of(figures=[], tables=[], claims=[]))
    other["studies"][0] |= {"name": "other", "title": "Does it guess better?", "question": ""}
    write(tmp_path, other)
    parsed, readme = page(tmp_path), (tmp_path / "README.md").read_text()
    for shown in (" ".join(parsed.text.split()), readme):
        assert re.search(r"1 (\*\*)?study", shown) and "Nothing was made" not in shown and "A title of old" in shown
        assert shown.index("of another config".capitalize() if shown is readme else "of another config") > 0
        assert "mae_figure4" not in shown and "Does it guess better? " in shown and "better?." not in shown
    claims = [link["href"] for link in parsed.all("a") if link["href"].startswith("claims/mae")]
    assert len(parsed.all("img")) == 2 and claims and " supported" in readme


def test_a_study_of_scores_alone_is_one_of_the_folder(tmp_path):
    import pandas as pd

    (tmp_path / "made/studies").mkdir(parents=True)
    pd.DataFrame({"value": [0.5, 0.6, 0.7]}).to_parquet(tmp_path / "made/studies/mae.parquet")
    write(tmp_path, outline(config_of(figures=[], tables=[], claims=[])))
    for shown in (" ".join(page(tmp_path).text.split()), (tmp_path / "README.md").read_text()):
        assert "1 study" in shown and "Nothing was made" not in shown and "folder has nothing" not in shown
        assert "scores only" in shown and "Scores only: 3 of them" in shown


def test_each_study_has_an_anchor_of_its_own(tmp_path):
    """Of `kd` and `kd+` GitHub makes one anchor and numbers the second; it keeps marks of letters."""
    import pandas as pd

    names = ["columns", "kd", "kd+", "हिन्दी"]
    (tmp_path / "made/studies").mkdir(parents=True)
    for name in names:
        pd.DataFrame({"value": [0.5]}).to_parquet(tmp_path / f"made/studies/{name}.parquet")
    write(tmp_path, outline(config_of(figures=[], tables=[], claims=[])))
    parsed, readme = page(tmp_path), (tmp_path / "README.md").read_text()
    places = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(places) == len(set(places))
    inside = [link["href"] for link in parsed.all("a") if link["href"].startswith("#study-")]
    assert len(set(inside)) == 4 and {link[1:] for link in inside} <= {*places}
    assert re.findall(r"\]\(#(.+?)\)", readme) == ["columns", "kd", "kd-1", "हिन्दी"]


def test_a_study_of_scores_alone_keeps_its_words_under_another_config(tmp_path):
    test_a_study_of_scores_alone_is_one_of_the_folder(tmp_path)
    other = outline(config_of(figures=[], tables=[], claims=[]))
    other["studies"][0] |= {"name": "other", "title": "Does it guess better?"}
    for _ in range(2):  # the words are still there after a page that did not declare the study
        write(tmp_path, other)
    for shown in (" ".join(page(tmp_path).text.split()), (tmp_path / "README.md").read_text()):
        about = RAW["studies"]["mae"]
        assert about["title"] in shown and about["question"] in shown and "Scores only: 3 of them" in shown
    (tmp_path / "state/pages.json").write_text("[1]")
    write(tmp_path, other)
    assert "Scores only: 3 of them" in (tmp_path / "README.md").read_text()


def test_the_job_that_writes_the_page_counts_itself(made):
    from masklab.pages.made import made as recorded

    before = recorded(made)["jobs"]
    assert recorded(made, job=True)["jobs"] == before + 1
    write_json({"finished": True, "ended": 10.0, "seconds": 1.0}, made / "made/report.json")
    assert recorded(made, job=True)["jobs"] == recorded(made)["jobs"] == before + 1
    (made / "made/report.json").unlink()


def test_what_the_store_gave_is_no_job_of_the_run(made):
    from masklab.pages.made import made as recorded

    before = recorded(made)
    record = {"finished": True, "ended": 1.0, "seconds": 0.5, "host": "elsewhere", "taken_from": "store/1"}
    write_json(record, made / "made/models/taken/r1.json")
    assert recorded(made) == before | {"taken": before["taken"] + 1}
    (made / "made/models/taken/r1.json").unlink()


def test_a_broken_figure_and_broken_claims_do_no_harm(made, tmp_path):
    for file in ("figures/mae/figure4.png", "claims/mae.parquet"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"broken")
    write(tmp_path, outline(config_of()))
    assert "Not made yet" in page(tmp_path).text and "not tested yet" in page(tmp_path).text


def test_a_study_without_claims_or_words(made, tmp_path):
    shutil.copytree(made / "figures", tmp_path / "figures")
    write(tmp_path, outline(config_of(title="", question="", scale="", claims=[], tables=[])))
    text = " ".join(page(tmp_path).text.split())
    assert "tests no claims" in text and "does not say how large it is" in text and "What the verdicts mean" not in text


def test_what_is_outdated_says_so(made, tmp_path):
    results(tmp_path, config := config_of())
    write(tmp_path, outline(config), outdated=["mae_figure4"])
    text = page(tmp_path).text
    assert text.count("earlier configuration") == 1
    assert text.index("Figure 4") < text.index("earlier configuration") < text.index("mae_figure4")
    assert "(outdated)" not in text
    write(tmp_path, outline(config), outdated=["mae_claims"])
    for said in (page(tmp_path).text, (tmp_path / "README.md").read_text()):
        assert said.count("earlier configuration") == 1 and said.count("(outdated)") == 1
        assert said.index("(outdated)") < said.index("Claims") < said.index("earlier configuration")


def test_equal_results_give_equal_pages(made):
    before = (made / "report.html").read_bytes(), (made / "README.md").read_bytes()
    write(made, outline(config_of()), options(configfiles=[made / "my config.yaml"]))
    assert before == ((made / "report.html").read_bytes(), (made / "README.md").read_bytes())


def test_an_outline_is_plain_and_light():
    import subprocess
    import sys

    assert json.loads(json.dumps(outline(config_of()))) == outline(config_of())
    modules = "masklab.pages.outline, masklab.pages.wording"
    code = f"import sys, {modules}; print({{'pandas', 'torch', 'jinja2'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_the_scale_of_the_run_is_that_of_its_studies():
    config = load(RAW | {"scale": "evening: an hour", "studies": {"mae": RAW["studies"]["mae"] | {"scale": ""}}})
    assert outline(config)["studies"][0]["scale"] == "evening: an hour"


def test_headlines_are_checked_like_other_claims():
    config = config_of(headline=["lemma-twice"])
    claims = claims_of("mae", config.studies["mae"], View.of(config, "mae"))
    assert [claim.name for claim in claims if claim.headline] == ["lemma-twice"]
    config = config_of(headline=["no-such"])
    with pytest.raises(MaskLabError, match=r"config: studies\.mae\.headline: 'no-such' is no claim that it tests"):
        claims_of("mae", config.studies["mae"], View.of(config, "mae"))


@pytest.mark.parametrize(("count", "shown"), [(2, 2), (3, 3), (4, 0)])
def test_of_few_claims_none_of_which_is_decided_all_stand_first(count, shown):
    config = config_of()
    found = synthetic.results(config, "mae", learned=False)
    claims = test_claims(claims_of("mae", config.studies["mae"], found.view), found)
    assert set(claims["verdict"]) == {"untested"}
    assert len(headlines(claims[~claims["headline"]].head(count))) == shown


def test_margins_are_of_known_metrics():
    config = config_of(margins={"ranks": 1.0})
    with pytest.raises(MaskLabError, match=r"config: studies\.mae\.margins: no metric 'ranks' \(did you mean"):
        claims_of("mae", config.studies["mae"], View.of(config, "mae"))


def test_the_comparison_stands_in_the_readme(tmp_path):
    """It is the answer in numbers; other tables are linked."""
    config = config_of(figures=[], tables=["comparison", "table1"], claims=[])
    results(tmp_path, config)
    write(tmp_path, outline(config))
    readme = (tmp_path / "README.md").read_text()
    text = {name: (tmp_path / f"tables/mae/{name}.md").read_text().strip() for name in ("comparison", "table1")}
    assert f"#### Comparison\n\n{text['comparison']}\n" in readme and text["table1"] not in readme


def test_titles_and_commands():
    assert [title(name) for name in ("figure3a", "figure5_embedded", "table1_full_width", "losses")] == [
        "Figure 3a", "Figure 5, embedded", "Table 1, full width", "Losses",
    ]  # fmt: skip
    assert command("") == "snakemake --cores all"
    assert options(values=["seed=2", "run=a b"]) == " --config seed=2 'run=a b'"
    assert options("/elsewhere/Snakefile") == " --snakefile /elsewhere/Snakefile"


def test_everything_in_a_wing_has_a_caption():
    config = load(RAW)
    for name, study in config.studies.items():
        for section in ("figures", "tables"):
            for item in getattr(study, section):
                assert caption(name, study, section, item).endswith("."), (name, item)
        assert study.question.endswith("?") and study.scale.startswith("toy: ")


def test_a_figure_of_ones_own_that_is_too_large_stops_no_page(tmp_path, monkeypatch):
    from masklab.pages.thumbnails import thumbnail

    Image.new("RGB", (30, 30)).save(tmp_path / "f.png")
    assert thumbnail(tmp_path / "f.png")[1:] == (30, 30)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # an error from twice as many on
    assert thumbnail(tmp_path / "f.png") is None


def test_a_thumbnail_keeps_the_colours_of_curves(tmp_path):
    from masklab.pages.thumbnails import thumbnail
    from masklab.report.style import COLORS

    drawn = Image.new("RGB", (1950, 800), "white")
    for at, colour in enumerate(COLORS):
        drawn.paste(colour, (at * 200, 100, at * 200 + 150, 700))
    drawn.save(tmp_path / "f.png")
    uri, width, _ = thumbnail(tmp_path / "f.png")
    with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as small:
        small = small.convert("RGB")
    for at, colour in enumerate(COLORS):
        shown, wanted = small.getpixel(((at * 200 + 75) * width // 1950, 180)), Image.new("RGB", (1, 1), colour)
        assert max(abs(a - b) for a, b in zip(shown, wanted.getpixel((0, 0)), strict=True)) <= 8
