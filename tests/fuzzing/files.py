"""Saved folders with something broken: what is read of them is whole, or a typed error."""

import functools
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from pyhybrid.engines import ConvergenceRule
from pyhybrid.studies.study import Measured, Size, Study
from tests.fuzzing.engine import RandomDraws


def _table() -> pd.DataFrame:
    index = pd.Index([f"p{i}" for i in range(8)], name="label")
    numbers = {"y": [0, 3, 1, 2, 5, 1, 4, 2], "x": [0.5, 1.25, 2.0, 0.1, 3.0, 0.7, 1.1, 0.2]}
    own = {"g": pd.Categorical(["a", "b"] * 4), "d": pd.date_range("2020-01-01", periods=8)}
    return pd.DataFrame({**numbers, **own}, index=index)


def _save_release(folder: Path) -> None:
    first = ph.LipschitzWeighted(ph.Poisson("y ~ g"), scale=0.9, shift=0.05)
    steps = ph.SequentialSynthesis([first, ph.Unweighted(ph.NormalRegression("x ~ g"))])
    options: Any = {"engine": RandomDraws(), "settings": SETTINGS, "rule": RULE, "seed": 1}
    steps.release(_table(), n_synthetic=2, **options).save(folder / "saved", report=False)


def _save_calibration(folder: Path) -> None:
    options: Any = {"engine": RandomDraws(), "settings": SETTINGS, "rule": RULE, "seed": 1}
    model = ph.NegativeBinomial("y ~ g")
    ph.calibrate(
        model, _table(), epsilon=4, n_draws=5, holds_no_released_record=True, **options
    ).save(folder / "saved")


def _save_masked(folder: Path) -> None:
    df = pd.concat([_table()] * 10, ignore_index=True)
    settings = ph.masking.GibbsSettings(warmup=50, draws=50)
    made = ph.masking.MaskedImputation(
        keys=["y"], n_synthetic=2, settings=settings, predictors=["x"], on_not_converged="warn"
    )
    kept = [name for name in df.columns if name != "y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.release(df, seed=1).save(folder / "saved", report=False, keep=kept)


SETTINGS = ph.engines.SamplerSettings(chains=2, warmup=1, draws=8)
RULE = ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0)


def _measure(setting: str, random: Any, options: Any) -> Any:
    return [Measured("all", "mean", float(random.generator("mean").normal()))]


def _save_study(folder: Path) -> None:
    study = ph.studies.STUDIES["A"]
    own = Study(
        name=study.name, title="t", source="[S22]", settings=("one", "two"), measure=_measure,
        quick=Size(replicates=2, options={}), paper=Size(replicates=2, options={}),
    )  # fmt: skip
    ph.studies.run_study(own, out=folder / "saved", engine="embedded")


def _use_release(folder: Path) -> None:
    release = ph.Release.load(folder)
    assert release.statement
    assert repr(release)


def _use_calibration(folder: Path) -> None:
    loaded = ph.mechanisms.Calibration.load(folder)
    bound = loaded.model.bind(_table())
    alpha = loaded.weights(bound)
    assert ((alpha >= 0) & (alpha <= 1)).all()
    assert 0 <= loaded.drift(bound).share_outside <= 1
    assert ph.Censored(calibration=loaded).describe()


def _use_study(folder: Path) -> None:
    result = ph.studies.load_study(folder)
    assert len(result.summary) > 0


def _use_masked(folder: Path) -> None:
    release = ph.masking.MaskedRelease.load(folder)
    assert "NOT differentially private" in release.statement.text


SAVED: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "release": (_save_release, _use_release), "calibration": (_save_calibration, _use_calibration),
    "masked release": (_save_masked, _use_masked), "study": (_save_study, _use_study),
}  # fmt: skip
"""What is stored: how it is written, and how it is read and used."""


@functools.cache
def stored(kind: str) -> dict[str, bytes]:
    """The files of a whole one, by path."""
    with TemporaryDirectory() as name:
        SAVED[kind][0](Path(name))
        root = Path(name) / "saved"
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was done to one file of a saved folder."""

    kind: str
    file: str
    how: str
    place: int
    value: Any


def check_damage(damage: Damage, root: Path) -> None:
    """What is left in `root` is read and used, or refused by a typed error."""
    for name, content in stored(damage.kind).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    _do(damage, root / damage.file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            SAVED[damage.kind][1](root)
        except PyhybridError as error:
            assert str(error)  # noqa: PT017


def _do(damage: Damage, path: Path) -> None:
    content = path.read_bytes()
    place = damage.place % max(1, len(content))
    if damage.how == "empty":
        path.write_bytes(b"")
    elif damage.how == "cut":
        path.write_bytes(content[:place])
    elif damage.how == "byte":
        path.write_bytes(content[:place] + damage.value + content[place + 1 :])
    elif damage.how == "cell":
        rows = [line.split(",") for line in content.decode().split("\n")]
        row = rows[damage.place % len(rows)]
        row[damage.place // 7 % len(row)] = str(damage.value)
        path.write_text("\n".join(",".join(each) for each in rows))
    else:
        path.write_text(json.dumps(_edited(json.loads(content), damage)))


def _edited(whole: Any, damage: Damage) -> Any:
    """The JSON with one value changed, or one key taken out, anywhere in it."""
    spots: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            spots.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(whole)
    node, key = spots[damage.place % len(spots)]
    if damage.how == "key" and isinstance(node, dict):
        del node[key]
    else:
        node[key] = damage.value
    return whole
