"""What `kernelforge report` writes of a project, read as a browser and as a program read it."""

import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import chdir
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from report_cases import HOSTILE, comparison, file_project, measured, spent
from typer.testing import CliRunner

from kernelforge_engine.store.database import Database
from kernelforge_engine.store.usage import UsageBook
from kernelforge_server.cli.app import app

VOID = {"meta", "circle", "line", "path", "br"}
NARROW = 500  # the least that a browser without a window makes of itself
WIDER = """<script>document.title = "wider by " +
Math.max(0, document.documentElement.scrollWidth - window.innerWidth)</script></body>"""


class Page(HTMLParser):
    """What is in a page, which has to be well-formed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def ids(self):
        return [value for _, name, value in self.attributes if name == "id"]


def filed(folder, *rows, **changes):
    asyncio.run(file_project(folder / ".kernelforge", *rows, **changes))
    return folder


@pytest.fixture(scope="module")
def won(tmp_path_factory):
    """A project whose one cast makes the model faster, in which every note is hostile."""
    compiled = comparison("compile", 0.95)
    return filed(tmp_path_factory.mktemp("won"), measured(comparison(), compiled), note=HOSTILE)


@pytest.fixture
def reported(command):
    """The page of a project, and the JSON document."""

    def report(folder):
        ended = command(folder)("report", "--overwrite", "-o", "page.html", "--json")
        assert ended.returncode == 0, ended
        return Page((folder / "page.html").read_text()), json.loads(ended.stdout)

    return report


@pytest.fixture
def command():
    """The command, in this process and in a folder."""

    def run_in(folder):
        def run(*arguments):
            with chdir(folder):
                ended = CliRunner().invoke(app, list(map(str, arguments)))
            return subprocess.CompletedProcess(
                arguments, ended.exit_code, ended.stdout, ended.stderr
            )

        return run

    return run_in


def test_the_page_needs_nothing_else_and_is_marked_up_for_everybody(won, reported):
    page, document = reported(won)
    assert document["written"] == [str(won / "page.html")]
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    assert {name for _, name, _ in page.attributes} & {"src", "href", "onload", "onclick"} == set()
    (style,) = re.findall(r"<style>(.*?)</style>", (won / "page.html").read_text(), re.DOTALL)
    assert not re.search(r"url\(|@import|//", style)
    assert len(set(page.ids())) == len(page.ids())
    named = {value for _, name, value in page.attributes if name == "aria-labelledby"}
    assert {one for names in named for one in names.split()} <= set(page.ids())
    assert page.tags.count("svg") == page.tags.count("desc") == 2
    assert page.tags.count("table") == page.tags.count("caption") == page.tags.count("thead")


def test_what_others_wrote_is_text_in_the_page_and_in_the_markdown(won, reported, command):
    page, _ = reported(won)
    assert HOSTILE in page.text
    ended = command(won)("report", "--markdown", "-")
    assert ended.returncode == 0, ended.stderr
    assert "vectorized" not in ended.stdout
    for raw in ("<script", "<img", "[x](javascript", "</title>"):
        assert not re.search(rf"(?<!\\){re.escape(raw)}", ended.stdout)
    heads = [line.count("|") - line.count("\\|") for line in ended.stdout.splitlines()
             if line.startswith(("| a2 ", "| n2 "))]  # fmt: skip
    assert heads == [7, 7]  # what they wrote opened no column


def test_a_report_says_what_was_found_and_what_it_is_worth(won, reported):
    page, document = reported(won)
    assert page.text.count("The whole model runs 1.36x faster") == 1
    for words in (
        "one run 8.1 ms, its operators 7.6 ms",
        "99.4% of the calls of an unobserved run",
        "1.000x (0.950 to 1.050) no clear difference",
        "2.84x (2.70 to 3.01) generated n6 of v1",
        "8 valid 1 timed out, 3 wrong values, 1 compile failed",
        "The best is n6 with 2.84x (2.70 to 3.01): eager to n2 to n3 to n4 to n6.",
        "a3, a4 2 times wrong values",
        "under 0.5% of the model's time to save",
        "an output is a view",
        "aten::silu, v2",  # which a family covers, and which was tried by itself all the same
    ):
        assert words in page.text
    cards = {card["operator"]: card for card in document["cards"]}
    (target,) = cards["aten::group_norm"]["targets"]
    assert (target["best"]["node_id"], target["best"]["label"]) == ("n6", "generated")
    assert (target["valid"], target["refused"]["wrong_values"]) == (8, 3)
    assert "the whole model at most" in cards["aten::conv2d"]["targets"][0]["why_no_more"]
    assert document["measurements"][0]["measurement"]["rows"][0]["outcome"] == "faster"
    assert document["capture"]["doubt"] is None


def test_a_win_costs_all_that_was_spent_failures_included(won, reported):
    page, document = reported(won)
    assert document["winners"] == ["n6"]
    usage = document["usage"]
    assert (usage["model_wins"], usage["reports"]) == (1, 5)
    assert usage["dollars_per_model_win"] == usage["dollars"] == pytest.approx(5 * 0.45)
    assert "Cost of a win in a whole model: $2.25 over 1 win = $2.25 each." in page.text
    assert document["arms"]["first"]["model_wins"] == 1
    (card,) = (c for c in document["cards"] if c["operator"] == "aten::group_norm")
    assert card["usage"]["dollars"] == pytest.approx(4 * 0.45)


SLOW = comparison(low=0.7)
TAKEN_BACK = measured(comparison(low=0.96), at=2.0)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((), "1 kernel is faster; the whole model was not measured yet"),
        ((measured(comparison(), sha=None),), "1 kernel is faster; the whole model was not"),
        ((measured(SLOW),), "The whole model runs 1.33x slower"),
        ((measured(comparison()), TAKEN_BACK), "no clear difference with its new kernels"),
        ((measured(comparison(), sha="cd" * 32),), "The whole model runs 1.36x faster"),
        ((measured(comparison(), saving_us=-300.0),), "The whole model runs 1.36x faster"),
    ],
    ids=["not measured", "nothing written", "slower", "measured again", "another", "not with it"],
)
def test_what_no_measurement_shows_is_no_win(rows, words, tmp_path, reported):
    page, document = reported(filed(tmp_path, *rows))
    assert words in page.text
    assert document["winners"] == []
    assert "model_wins" not in document["usage"]
    assert "No kernel has won in a whole model so far, so there is no cost per win." in page.text


def test_a_kernel_that_was_left_out_once_may_win_later(tmp_path, reported):
    left_out = measured(SLOW, sha=None, saving_us=-300.0)
    _, document = reported(filed(tmp_path, left_out, measured(comparison())))
    assert document["winners"] == ["n6"]


def test_dollars_that_are_not_known_are_said_to_be_so(tmp_path, reported):
    folder = filed(tmp_path, measured(comparison()))

    async def spend():
        async with Database.open(folder / ".kernelforge", None) as database:
            await UsageBook(database).add(spent("x", "n6", model="nobody-knows"), 0.0)

    asyncio.run(spend())
    page, document = reported(folder)
    assert document["usage"]["dollars_per_model_win"] == "unknown"
    assert "No price is known for nobody-knows." in page.text
    assert "1,476,000 tokens each; dollars are unknown (1 win)" in page.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"busy_us": 90_000.0}, "other work on this machine got into the timings"),
        ({"load_per_thread": 3.2}, "busy when the model was captured (3.2 processes for each"),
        ({"error": "ValueError: no"}, "The model raised ValueError: no; only what it ran before"),
        ({"unseen": {"aten::add": 3}}, "made calls that were not recorded: aten::add x3"),
    ],
)
def test_a_doubtful_capture_is_said_to_be_one_before_all_figures(
    changes, words, tmp_path, reported
):
    page, _ = reported(filed(tmp_path, **changes))
    assert 0 < page.text.index(words) < page.text.index("What was captured")


def test_the_same_records_give_the_same_bytes(won, command):
    for name in ("a", "b"):
        ended = command(won)("report", "-o", f"{name}.html", "--markdown", f"{name}.md")
        assert ended.returncode == 0, ended.stderr
    for suffix in ("html", "md"):
        first, second = ((won / f"{name}.{suffix}").read_bytes() for name in "ab")
        assert first == second


def test_what_is_there_is_replaced_only_when_that_is_asked_for(tmp_path, command, sentence):
    run = command(filed(tmp_path))
    (tmp_path / "report.html").write_text("mine")
    assert "use another path, or --overwrite" in sentence(run("report"), 2).lower()
    assert (tmp_path / "report.html").read_text() == "mine"
    assert run("report", "--overwrite").returncode == 0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert "JSON" in sentence(run("report", "--json", "--markdown", "-"), 2)
    assert "the page goes there" in sentence(run("report", "-o", "x", "--markdown", "x"), 2)
    assert "Next:" in run("report", "-o", tmp_path / "none" / "x.html").stderr


def test_a_project_without_a_capture_or_of_an_older_version_is_reported_too(
    tmp_path, command, sentence, reported
):
    run = command(tmp_path)
    assert "no capture yet" in sentence(run("report"), 2)
    folder = filed(tmp_path / "old")
    with sqlite3.connect(folder / ".kernelforge" / "forge.db") as old:
        for newer in ("cast_nodes", "casts", "measurements", "replayed", "replays", "calls"):
            old.execute(f"DROP TABLE {newer}")
        old.execute("PRAGMA user_version = 7")
    page, document = reported(folder)
    assert document["casts"] == document["measurements"] == []
    assert "No whole model was measured with a cast of this project yet" in page.text


def test_exports_and_measurements_are_on_record(forged, tmp_path, reported):
    folder = tmp_path / "copy"
    shutil.copytree(forged.folder, folder)
    run = forged.run
    before = {cast["sha256"] for cast in reported(folder)[1]["casts"]}  # other tests export, too
    ended = run("export", "-o", folder / "again.cast", "--keep-all", "--seconds", "2", "--json",
                "--project", folder / ".kernelforge")  # fmt: skip
    sha = json.loads(ended.stdout)["sha256"]
    run("measure", "model.py", "--cast", folder / "again.cast", "--seconds", "1",
        "--project", folder / ".kernelforge")  # fmt: skip
    page, document = reported(folder)
    casts = {cast["sha256"]: cast["node_ids"] for cast in document["casts"]}
    assert casts[sha] == [forged.node]
    assert set(casts) - before == {sha}
    made = [m for m in document["measurements"] if m["cast_sha256"] == sha]
    assert [m["task"] for m in made] == ["measure", "export"]
    assert {m["model"] for m in made} == {document["capture"]["model"]}
    assert "roll.cpp" in page.text


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
def test_a_narrow_screen_shows_the_page_without_scrolling_sideways(won, reported, tmp_path):
    reported(won)
    text = (won / "page.html").read_text().replace("default-src 'none'", "default-src *")
    text = re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", WIDER)
    (tmp_path / "page.html").write_text(text.replace("<details>", "<details open>"))
    shown = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={NARROW},900",
         f"file://{quote(str(tmp_path / 'page.html'))}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert re.findall(r"<title>(.*?)</title>", shown.stdout)[:1] == ["wider by 0"], shown.stderr
