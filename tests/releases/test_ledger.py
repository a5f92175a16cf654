"""The ledger: only releases, never past the budget, never a release without an entry. Squares of mu
add, at one delta, and rho where that is less.
"""

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, SaveFailed
from pyhybrid.fitting.session import open_session
from pyhybrid.primitives import LaplaceAnswer
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose
from pyhybrid.privacy.conversions import delta_of_mu, epsilon_of_mu
from pyhybrid.releases import folder as storage
from pyhybrid.releases.ledger import _locked
from tests.fits import ANY_DRAWS, fit_options
from tests.privacy.test_composition import gaussian
from tests.refusals import fails, no_space, refuses

TERMS: dict[str, Any] = {"kind": "strict", "relation": "replace"}


def answer(epsilon: float = 1.0, relation: str = "replace") -> LaplaceAnswer:
    """A primitive's answer, built without OpenDP: the ledger does not ask where noise is from."""
    counted = {"mechanism": "laplace_counts", "epsilon": epsilon}
    return answered(PrivacyCharge.strict(**counted, relation=relation))


def answered(charge: PrivacyCharge) -> LaplaceAnswer:
    """Something released with this charge: the ledger asks no more of it."""
    return LaplaceAnswer(charge=charge, value=np.array([3, 4]), sensitivity=1.0, scale=1e6)


@pytest.fixture(scope="module")
def release() -> ph.Release:
    """Asymptotic local, remove; two sets."""
    df = pd.DataFrame({"y": np.random.default_rng(2).poisson(3, 80), "z": np.arange(80) % 7})
    model = ph.Poisson("y ~ 1")
    few = fit_options(chains=4, warmup=300, draws=400, refits=0)
    mechanism = ph.LipschitzWeighted(model, scale=0.5, accounting="range")
    return mechanism.release(df, n_synthetic=2, seed=4, **few)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


def local_ledger(path: Path, budget: float = 1e6, **options: Any) -> ph.Ledger:
    return ph.Ledger(path, budget=budget, kind="asymptotic local", relation="remove", **options)


def test_entries_add_up_exactly_to_the_budget(path: Path) -> None:
    ledger = ph.Ledger(path, budget=0.3, **TERMS)
    for number in (1, 2, 3):
        entry = ledger.add(answer(0.1))
        assert (entry.number, entry.epsilon, entry.made_by) == (number, 0.1, "laplace_counts")
    assert ledger.spent == 0.3
    assert ledger.left == 0
    assert ledger.label == "strict, replace one record"
    before = path.read_bytes()
    said = r"left in ledger .*, 0 of 0\.3: it costs 0\.000001"
    fails(BudgetExceeded, said, ledger.add, answer(1e-6))
    assert path.read_bytes() == before
    again = ph.Ledger(path)
    assert (again.budget, again.kind, again.relation) == (0.3, "strict", "replace")
    assert again.entries == ledger.entries
    assert "0.3 of 0.3 spent" in repr(again)


def test_the_same_release_is_charged_once_and_an_equal_one_again(path: Path) -> None:
    ledger = ph.Ledger(path, budget=10, **TERMS)
    one = answer()
    assert ledger.add(one) == ledger.add(one)
    assert ledger.spent == 1
    ledger.add(answer())  # same values by chance: another release all the same
    assert ledger.spent == 2
    cheaper = replace(one, charge=answer(2.0).charge)  # under the old name
    refuses("must have the charge of entry 1 of ledger", ledger.add, cheaper)


def test_unlike_charges_are_refused_also_in_a_file(path: Path, release: ph.Release) -> None:
    ledger = ph.Ledger(path, budget=1000, **TERMS)
    ledger.add(answer())
    for unlike in (release, answer(relation="remove")):
        refuses(r"must be strict, replace: found.*is no guarantee", ledger.add, unlike)
    text = path.read_text()
    for old, new in (("replace", "remove"), ('"unit": null', '"unit": "person"')):
        first, line = text.splitlines(keepends=True)
        path.write_text(first + line + line.replace(old, new))
        refuses("entries of a ledger must be of its kind and relation", ledger.add, answer())


@pytest.mark.parametrize(
    "thing", [1.0, answer().charge, [answer()]], ids=lambda t: type(t).__name__
)
def test_nothing_but_releases(path: Path, thing: Any) -> None:
    ledger = ph.Ledger(path, budget=10, **TERMS)
    refuses(r"charges from releases only.*found", ledger.add, thing)
    assert ledger.entries == ()


@pytest.mark.long
def test_epsilons_add_for_random_numbers_of_their_own(path: Path, tmp_path: Path) -> None:
    ledger = local_ledger(path, 1e6)
    model = ph.Poisson("y ~ 1")
    table = pd.DataFrame({"y": np.random.default_rng(1).poisson(3, 60)})
    options: Any = {"engine": "embedded", "rule": ANY_DRAWS}
    session = open_session(model.bind(table), **options)
    own = {"n_synthetic": 1, "n_draws_released": 1, "refits": 0}
    one = ph.Unweighted(model).release_from(session, **own)
    ledger.add(one)
    ledger.add(ph.Unweighted(model).release_from(session, **own))  # other draws of the same chains
    half = ph.GivenWeights(model, alpha=np.full(60, 0.5))
    shares, says = half.release_from(session, **own), r"random numbers of their own: .* entry 1"
    refuses(says, shares.save, tmp_path / "out", ledger=ledger, keep=list(shares.exposed))
    ledger.add(ph.Unweighted(model).release(table, seed=1, refits=0, **options))
    seeded = half.release(table, seed=1, refits=0, **options)
    refuses("entry 3, another mechanism's of the same session or s", ledger.add, seeded)
    ledger.add(half.release(table, refits=0, **options))
    assert len(ledger.entries) == 4
    assert str(one.entropy) not in path.read_text()


def test_saving_charges_before_it_writes(path: Path, release: ph.Release, tmp_path: Path) -> None:
    epsilon = release.charge.epsilon
    small = local_ledger(path, epsilon - 0.01)
    how = {"ledger": small, "report": False}
    fails(BudgetExceeded, "Nothing was written", release.save, tmp_path / "out", **how)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["survey.ledger"]
    ledger = local_ledger(tmp_path / "enough", epsilon)
    release.save(tmp_path / "out", ledger=ledger, report=False)
    assert ledger.left == 0
    run = json.loads((tmp_path / "out/confidential/run.json").read_text())
    assert run["ledger"] == {"entry": 1}
    assert "bound" not in ledger.entries[0].charge == release.charge.public()
    # Other copies of the same release, also one read back from disk, cost nothing.
    release.save(tmp_path / "copy", ledger=ledger, report=False)
    ph.Release.load(tmp_path / "out").save(tmp_path / "loaded", ledger=ledger)
    text = release.synthetic[0].astype(str)
    release.with_unsynthesized(text).save(tmp_path / "restored", ledger=ledger)
    ph.Release.load(tmp_path / "restored").save(tmp_path / "again", ledger=ledger)
    assert len(ledger.entries) == 1


def test_a_mistake_costs_nothing_and_a_crash_costs_once(
    path: Path, release: ph.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = local_ledger(path, 1000)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("in the way")
    refuses("", release.save, tmp_path / "full", ledger=ledger, report=False)
    refuses("", release.save, tmp_path / "out", ledger=ledger, file_format="xlsx", report=False)
    refuses("must be a Ledger: found str", release.save, tmp_path / "out", ledger=str(path))
    assert ledger.entries == ()
    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_table", no_space)
        fails(SaveFailed, "", release.save, tmp_path / "out", ledger=ledger, report=False)
    assert len(ledger.entries) == 1, "the entry comes first, so that no data are without one"
    release.save(tmp_path / "out", ledger=ledger, report=False)
    assert len(ledger.entries) == 1


@pytest.fixture
def three(path: Path) -> ph.Ledger:
    ledger = ph.Ledger(path, budget=10, **TERMS)
    for epsilon in (1.0, 2.0, 0.5):
        ledger.add(answer(epsilon))
    return ledger


def test_a_torn_last_line_is_found_at_every_byte(three: ph.Ledger) -> None:
    whole = three.path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start + 1, len(whole)):
        three.path.write_bytes(whole[:end])
        refuses(r"line, 4, is incomplete.*from a backup.*delete that line", three.add, answer())
        assert three.path.read_bytes() == whole[:end], "a damaged file is left as it is"
    three.path.write_bytes(whole[:start])  # as the message says
    assert three.spent == 3


def test_lines_that_are_no_entries_are_found(three: ph.Ledger) -> None:
    lines = three.path.read_bytes().splitlines(keepends=True)
    for place, wrong in ((1, b"\n"), (2, b"[1]\n"), (3, lines[3][:-2] + b"\n")):
        three.path.write_bytes(b"".join([*lines[:place], wrong, *lines[place + 1 :]]))
        refuses(f"is damaged: line {place + 1} cannot be read", three.add, answer())
    for name in ("charge", "identifier", "time"):
        entry = {k: v for k, v in json.loads(lines[1]).items() if k != name}
        three.path.write_bytes(lines[0] + json.dumps(entry).encode() + b"\n")
        refuses("entry 1 of the ledger must be one that pyhybrid wrote", three.add, answer())
    three.path.write_bytes(b"".join(lines[1:]))
    refuses("must be a ledger of format 2", ph.Ledger, three.path)


def test_a_disk_error_leaves_the_file_as_it_was(three: ph.Ledger, monkeypatch: Any) -> None:
    before = three.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        fails(SaveFailed, r"could not be written: .*No space left", three.add, answer())
    assert three.path.read_bytes() == before
    assert three.add(answer()).number == 4


def test_the_file_is_private_and_a_locked_one_awaited(three: ph.Ledger, monkeypatch: Any) -> None:
    assert stat.S_IMODE(three.path.stat().st_mode) == 0o600
    monkeypatch.setattr("pyhybrid.releases.ledger._WAIT", 0.1)
    with _locked(three.path):
        fails(SaveFailed, "is locked: another process", three.add, answer())
        fails(SaveFailed, "is locked", ph.Ledger, three.path)
    assert three.add(answer()).number == 4


WORKER = """
import sys
import numpy as np
import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded
from tests.releases.test_ledger import answer
ledger = ph.Ledger(sys.argv[1], budget=20, kind="strict", relation="replace")
done = 0
for _ in range(15):
    try:
        ledger.add(answer())
        done += 1
    except BudgetExceeded:
        pass
print(done)
"""


@pytest.mark.long
def test_processes_at_once_never_overspend(path: Path) -> None:
    root = Path(ph.__file__).parents[1]
    words = [sys.executable, "-c", WORKER, str(path)]
    how: Any = {"cwd": root, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(words, **how) for _ in range(2)]
    done = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    assert sum(done) == 20
    ledger = ph.Ledger(path)
    assert ledger.spent == 20
    assert len({entry.identifier for entry in ledger.entries}) == 20


@pytest.mark.parametrize(("options", "message"), [
    ({}, "must exist, or be given budget, kind and relation.*found no budget"),
    ({"budget": 0, **TERMS}, "budget must be above 0"),
    ({"budget": 1, "kind": "local", "relation": "remove"}, "asymptotic local, strict"),
    ({"budget": 1, "kind": "strict", "relation": "swap"}, "remove, replace"),
])  # fmt: skip
def test_bad_terms(path: Path, options: dict[str, Any], message: str) -> None:
    refuses(message, ph.Ledger, path, **options)
    assert not path.exists()


def test_terms_are_fixed_and_other_files_are_no_ledgers(three: ph.Ledger, tmp_path: Path) -> None:
    for change in ({"budget": 11}, {"kind": "asymptotic local"}, {"relation": "remove"}):
        refuses("fixed when it was created", ph.Ledger, three.path, **change)
    assert ph.Ledger(three.path, budget=10, **TERMS).spent == 3.5
    refuses("cannot be opened", ph.Ledger, tmp_path)
    (tmp_path / "other").write_text("a,b\n1,2\n")
    refuses("is damaged: line 1", ph.Ledger, tmp_path / "other")
    content = {"budget": 500, "kind": "strict", "relation": "remove", "format": 99}
    (tmp_path / "later").write_text(json.dumps(content) + "\n")
    refuses("must be a ledger of format 2", ph.Ledger, tmp_path / "later")
    (tmp_path / "empty").touch()
    refuses("it is empty", ph.Ledger, tmp_path / "empty", budget=10, **TERMS)


def test_create_and_show(path: Path, run: Any, refused: Any) -> None:
    terms = ("--budget", "3", "--kind", "strict", "--relation", "replace")
    assert run("ledger", "create", path, *terms)[0] == 0
    assert "must be a new file" in refused("ledger", "create", path, *terms)
    ledger = ph.Ledger(path)
    ledger.add(answer(0.5))
    code, shown, _ = run("ledger", "show", path)
    assert code == 0
    assert "spent 0.5 of 3, left 2.5 (strict, replace one record)" in shown
    assert "laplace_counts" in shown
    assert "must exist" in refused("ledger", "show", f"{path}.not")


def test_charges_of_another_unit_are_refused(path: Path) -> None:
    """What a person's rows tell is not added to what a row tells."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"person": np.repeat(np.arange(60), 2), "y": rng.poisson(4, 120)})
    own = ph.Unweighted(ph.Poisson("y ~ 1"), accounting="range")
    short = fit_options(chains=2, warmup=200, draws=200, refits=0)
    row, person = (replace(own, unit=u).release(table, **short) for u in (None, "person"))
    ledger = local_ledger(path, 1e3)
    ledger.add(person)
    assert ledger.label == "asymptotic local, remove one person"
    refuses("one unit of privacy, person: found single rows", ledger.add, row)


def test_twenty_releases_cost_the_root_of_their_squares(path: Path) -> None:
    """Controls: sums of epsilon are above 16; the last mu alone says too little."""
    ledger = local_ledger(path, 5)
    for _ in range(20):
        ledger.add(answered(gaussian(0.2)))
    due = epsilon_of_mu(0.2 * 20**0.5, 1e-6)
    assert due <= ledger.spent < due + 0.0101
    one = gaussian(0.2).epsilon
    assert ledger.spent < 0.3 * 20 * one
    assert delta_of_mu(0.2 * 20**0.5, ledger.spent) <= 1e-6
    assert ledger.label == "asymptotic local at delta = 1e-06, remove one record"
    assert compose([gaussian(0.2)] * 20) == ledger.spent
    fails(BudgetExceeded, "", ledger.add, answered(gaussian(mu=0.8)))
    assert delta_of_mu(0.2 * 20**0.5, one) > 1e-3, "the control: it says too little"


def test_another_delta_is_refused(path: Path, tmp_path: Path) -> None:
    less = gaussian(0.2, delta=1e-8)
    says = "must be counted at its delta, 1e-06: found 1e-08"
    refuses(says, local_ledger(path).add, answered(less))
    local_ledger(tmp_path / "other", delta=1e-8).add(answered(less))
    refuses("has delta 1e-08, fixed when it was created", ph.Ledger, tmp_path / "other", delta=1e-6)
    refuses("at one delta: found 1e-08, 1e-06", compose, [gaussian(0.2), less])


def test_a_strict_ledger_with_a_delta_adds_rho_where_that_is_less(tmp_path: Path) -> None:
    """One draw of a censored posterior of M = 0.25, again and again."""
    terms: dict[str, Any] = {"budget": 7, "kind": "strict", "relation": "remove"}
    half: dict[str, Any] = {"mechanism": "Censored", "epsilon": 0.5, "loss_range": 0.5}
    at_delta = ph.Ledger(tmp_path / "a", delta=1e-6, **terms)
    pure = ph.Ledger(tmp_path / "b", **terms)

    def one_draw() -> LaplaceAnswer:
        return answered(PrivacyCharge.strict(**half, relation="remove", cap=0.25))

    spent = []
    for _ in range(20):
        at_delta.add(one_draw())
        spent.append(at_delta.spent)
    assert spent[:2] == [0.5, 1.0]
    assert spent[-1] == compose([one_draw().charge] * 20, delta=1e-6) < 6.6
    assert at_delta.label == "strict at delta = 1e-06, remove one record"
    assert ph.Ledger(tmp_path / "a").spent == spent[-1]
    for _ in range(14):
        pure.add(one_draw())
    fails(BudgetExceeded, "", pure.add, one_draw())
    for _ in range(2):
        at_delta.add(one_draw())
    assert 6.8 < at_delta.spent <= 7
    fails(BudgetExceeded, "", at_delta.add, one_draw())
