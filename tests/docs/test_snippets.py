"""Every snippet of the documentation is executed: Python, and commands as a shell would give them.

In the suite the warm-up is short (`short_chains`); nothing else differs from what a reader runs.
`make snippets` runs the same at full length (PYHYBRID_SNIPPETS=full).
"""

import doctest
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph
from tests.conftest import Run
from tests.docs.snippets import (
    ROOT,
    TABLE,
    TEXTS,
    name_of,
    run_page,
    short_chains,
    snippets_of,
    with_table,
)
from tests.refusals import fails

FULL = os.environ.get("PYHYBRID_SNIPPETS") == "full"
WITH_SNIPPETS = [path for path in TEXTS if snippets_of(path.read_text("utf-8"), name_of(path))]
ELSEWHERE = {
    "pip": "installation: tests/test_distribution.py installs the wheel",
    "make": "its targets are looked up in the Makefile",
    "pyhybrid demo": "tests/test_distribution.py runs it from the wheel",
}
TOLD = "(?s).*scalar weight"
"""Warnings of the curve that its page, guide/mechanisms.md, speaks of."""
NOT_RUN = {
    "README.md": 3, "docs/pages/guide/engines_and_r.md": 3,
    "docs/pages/studies.md": 1, "docs/pages/howto/own_stan_model.md": 1,
}  # fmt: skip
"""Blocks with a reason in their title, by page; a new one is a change of this table."""


@pytest.fixture(autouse=True)
def _shorter() -> Iterator[None]:
    with nullcontext() if FULL else short_chains():
        yield


def _runner(run: Run | None) -> Callable[[list[str], str], None]:
    def command(words: list[str], place: str) -> None:
        if words[0] == "make":
            makefile = (ROOT / "Makefile").read_text("utf-8")
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), place
            return
        if words[0] in ELSEWHERE or " ".join(words) in ELSEWHERE:
            return
        assert words[0] == "pyhybrid", f"{place}: {words}"
        assert run is not None, f"{place}: {words}"
        code, _, err = run(*words[1:])
        assert code == 0, f"{place}: {' '.join(words)}\n{err}"

    return command


@pytest.mark.samples
@pytest.mark.parametrize("path", WITH_SNIPPETS, ids=name_of)
def test_a_page_runs_from_top_to_bottom(path: Path, run: Run) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=TOLD)
        if not FULL:
            warnings.filterwarnings(
                "ignore", message="(?s).*(converged|scalar weight|further from the data)"
            )
        run_page(with_table(path), _runner(run))


@pytest.mark.samples
def test_the_tables_of_the_first_pages_run() -> None:
    """Their right columns, line after line, with what README's first snippet makes."""
    readme = (ROOT / "README.md").read_text("utf-8")
    tables = readme, (ROOT / "docs" / "pages" / "index.md").read_text("utf-8")
    lines = [re.findall(r"^\| .* \| `([^`]+)`", text, re.MULTILINE) for text in tables]
    assert [len(of_page) for of_page in lines] == [7, 3]
    names = run_page(snippets_of(readme, "README.md")[1:2], _runner(None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in [*lines[0], *lines[1]]:
            exec(line, names)
    assert names["weighted"].bounds.overall < names["session"].unweighted().bounds.overall


def test_what_is_not_run_is_counted() -> None:
    reasons = {
        name_of(path): len([s for s in snippets_of(path.read_text("utf-8"), "") if s.not_run])
        for path in WITH_SNIPPETS
    }
    assert {page: n for page, n in reasons.items() if n} == NOT_RUN
    run = [s for path in WITH_SNIPPETS for s in snippets_of(path.read_text("utf-8"), "")]
    assert len([s for s in run if s.not_run is None]) > 40


MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "pyhybrid").rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text("utf-8"), re.MULTILINE)
)


class _WhereStated(doctest.OutputChecker):
    """Without an output in the docstring any will do."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return want == "" or super().check_output(want, got, optionflags)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What examples take as given: the guide's table, a model, a release."""
    monkeypatch.chdir(tmp_path)
    given = run_page(snippets_of(TABLE.read_text("utf-8"), name_of(TABLE))[:1], _runner(None))
    model = ph.NegativeBinomial("visits ~ 1")
    histogram = ph.PerturbedHistogram(column="visits", lower=0, upper=60, n_bins=30, epsilon=1)
    table = given["df"][["visits", "doctor", "voted", "income", "age", "sex"]]
    return {
        **given, "model": model, "df": table.assign(person=range(len(table))), "this_year": table,
        "release": histogram.release(table),
    }  # fmt: skip


@pytest.mark.samples
@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_reference_run(
    module: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """With `ph`, `np`, `pd` and what `names` holds beside the module's own names."""
    runner = doctest.DocTestRunner(_WhereStated(), verbose=False)
    for test in doctest.DocTestFinder().find(importlib.import_module(module), extraglobs=names):
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0, capsys.readouterr().out


@pytest.mark.samples
@pytest.mark.parametrize(("text", "error"), [
    ("```python\nimport pyhybrid as ph\nph.no_such_name\n```\n", AttributeError),
    ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", AssertionError),
    ("```\npyhybrid synthesize missing.csv --formula 'y ~ 1' --out out\n```\n", AssertionError),
    ("```\npyhybrid ledger \\\n    no_such_command\n```\n", AssertionError),
    ("```\npyhybrid doctor && cp a b\n```\n", AssertionError),
    ("```\nmake no_such_target\n```\n", AssertionError),
])  # fmt: skip
def test_a_broken_snippet_fails(text: str, error: type[Exception], run: Run) -> None:
    fails(error, "", run_page, snippets_of(text, "page"), _runner(run))


@pytest.mark.parametrize("text", [
    "```py\nx\n```\n", '```python title="no"\nx\n```\n', "```python no-run\nx\n```\n",
    "```python\nx\n",
])  # fmt: skip
def test_a_fence_that_would_not_be_seen_is_refused(text: str) -> None:
    fails(ValueError, "fence", snippets_of, text, "page")
