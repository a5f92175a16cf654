"""The reviewer's checklist: what stands out is marked, and what does not is not."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from tests.fits import fit_options

COUNTS = ph.Poisson("y ~ 1", prior="normal")
SHORT = fit_options(chains=2, warmup=400, draws=600)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame({"y": rng.poisson(4, 80), "sex": rng.choice(["f", "m"], 80)})


@pytest.fixture(scope="module")
def release() -> ph.Release:
    mechanism = ph.Unweighted(COUNTS, delta=1e-3, accounting="gaussian")
    return mechanism.release(_table(), n_synthetic=2, seed=20300405, **SHORT)


def _rows(page: str) -> dict[str, tuple[str, str]]:
    row = r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>'
    cells = re.findall(row, page, re.DOTALL)
    bare = (
        [re.sub("<.*?>", "", each).replace("\u00a0", " ").strip() for each in row] for row in cells
    )
    return {name: (found, mark) for name, found, mark in bare}


def test_every_part_is_answered_from_the_release(release: ph.Release) -> None:
    rows = _rows(ph.reports.review_checklist(release))
    assert rows["Unit of privacy"][0] == "one record (row)"
    assert rows["Neighboring databases"][0] == "remove one record (row)"
    assert rows["Epsilon"][1] == "as it should be"
    assert rows["Convergence"][1] == "as it should be"
    assert rows["As in the data"] == ("sex", "to decide")
    assert rows["Unique records"][0].startswith("0 of 80")
    assert "Not covered, 1" in rows


def test_what_stands_out_is_marked(release: ph.Release) -> None:
    """A seed set by hand, a large epsilon, records that are alone; the others are the controls."""
    rows = _rows(ph.reports.review_checklist(release))
    assert rows["Seed"][1] == "LOOK"
    own = _table().assign(sex=np.arange(80))
    many = ph.Unweighted(COUNTS, accounting="lipschitz").release(own, n_synthetic=3, **SHORT)
    rows = _rows(ph.reports.review_checklist(many))
    assert rows["Epsilon"][1] == "LOOK"
    assert rows["Seed"][1] == "as it should be"
    assert rows["Unique records"] == ("80 of 80 records, by the unchanged columns", "LOOK")


def test_neither_weights_nor_bounds_nor_seed_are_in_it(release: ph.Release) -> None:
    page = ph.reports.review_checklist(release)
    for secret in (20300405, release.charge.bound, release.confidential.loss.loss_range):
        assert str(secret) not in page
        assert f"{secret:.4g}" not in page


def test_a_ledger_that_was_charged_is_told(release: ph.Release, tmp_path: Path) -> None:
    how = {"kind": "asymptotic local", "relation": "remove", "delta": 1e-3}
    ledger = ph.Ledger(tmp_path / "survey.ledger", budget=1e6, **how)
    release.save(tmp_path / "out", ledger=ledger)
    page = (tmp_path / "out" / "confidential" / "checklist.html").read_text()
    others = "Other releases of these data"
    assert _rows(page)[others] == ("their epsilons add up in the ledger charged", "as it should be")
    assert _rows(ph.reports.review_checklist(release))[others][1] == "to decide"


def test_each_step_of_a_sequence_is_judged_and_words_have_colors(release: ph.Release) -> None:
    models = COUNTS, ph.Bernoulli("sex ~ 1", levels=("f", "m"), prior="normal")
    steps = ph.SequentialSynthesis([*map(ph.Unweighted, models)])
    made = steps.release(_table(), on_not_converged="warn", **SHORT)
    page = ph.reports.review_checklist(made)
    rows = _rows(page)
    assert "Sampling" not in rows, "there are chains"
    for place, (column, part) in enumerate(zip(("y", "sex"), made.parts, strict=True), start=1):
        found, word = rows[f"Convergence, {place}"]
        assert found.startswith(f"{column}: ")
        assert word == ("as it should be" if part.diagnostics.converged else "LOOK")
    for word in ("to decide", "as it should be"):
        assert f'<span class="word {word}">{word}</span>' in page
    assert len(set(re.findall(r"<caption>(.*?)</caption>", page))) == 6
