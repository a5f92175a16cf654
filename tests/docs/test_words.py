"""Words: one name for one thing, no figures of speech, on pages and in texts of releases."""

import re

import pytest

from tests.docs.snippets import ROOT, TEXTS

PACKAGE = ROOT / "pyhybrid"
READ = [*TEXTS, *sorted(PACKAGE.rglob("words.jinja")), PACKAGE / "cli" / "options.py"]
NOT_SO = {
    r"\bholds? \w+ against\b": "compare the two", r"what people wait for": "run times",
    r"decides on the word": "ask which guarantee they need",
    r"\bhears (little|much|nothing)": "learns from",
    r"\bat (its|their) word\b": "as if it were data",
    r"\bwho has \w+ rows\b": "a person with ... rows", r"\bowner's word\b|\byour word\b": "confirm",
    r"\bmost is told about\b|\bare told about\b": "that the release tells most about",
    r"\bbehind it, against\b|guarantee behind": "is a guarantee", r"\butili[sz]e": "use",
    r"\bin order to\b": "to", r"\b(simply|obviously|of course|needless to say)\b": "leave out",
    r"\bsynthesis(ed|es)\b(?<!syntheses)": "synthesized, with z",
    r"\bdifferential-privacy\b": "differential privacy", r"\bposteriori\b": "posterior",
}  # fmt: skip
"""Patterns, and what to write in their place."""


@pytest.mark.parametrize("path", READ, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_words_are_plain(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S)
    text = " ".join(text.split())
    found = {m[0]: new for old, new in NOT_SO.items() for m in re.finditer(old, text, re.I)}
    assert found == {}


def test_a_figure_of_speech_is_found():
    assert re.search(next(iter(NOT_SO)), "pyhybrid validate holds Python against it")
