"""What a masked release says and holds: shares left unchanged, default strengths, no notes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import pyhybrid as ph
from pyhybrid.masking import CartSynthesis, GibbsSettings
from tests.fits import ANY_DRAWS

CANARY = "largest 7919"
QUICK = GibbsSettings(chains=2, warmup=40, draws=60, sweeps=5, rule=ANY_DRAWS)
KEYS = ["sex", "grade", "region", "age"]


def people(n: int = 1200, seed: int = 1) -> pd.DataFrame:
    """Keys that nothing predicts, levels equally frequent; an outcome."""
    rng = np.random.default_rng(seed)
    grades = [f"g{level}" for level in range(5)]
    codes = rng.permutation(np.arange(n) % 5)
    return pd.DataFrame({
        "sex": np.where(rng.permutation(np.arange(n) % 2), "f", "m"),
        "grade": pd.Categorical.from_codes(codes, grades, ordered=True),
        "region": np.array(list("abcde"))[rng.permutation(np.arange(n) % 5)],
        "age": rng.normal(45, 15, n).round(), "income": rng.normal(size=n).round(2),
    })  # fmt: skip


def masked(frame: pd.DataFrame, **how: Any) -> ph.masking.MaskedRelease:
    masks = ph.masking.masks_by_type(frame, KEYS, **how)
    imputation = ph.masking.MaskedImputation(keys=KEYS, masks=masks, n_synthetic=2, settings=QUICK)
    return imputation.release(frame, seed=1)


def kept_by_mask_alone(separation: float, n_levels: int) -> float:
    """Probability that the level drawn given W is the true one, equally frequent ordered levels."""
    centers = separation * np.arange(n_levels)

    def squared(w: float) -> float:
        p = stats.norm.pdf(w, centers)
        return float((p**2).sum() / p.sum())

    ends = (-9.0, float(centers[-1]) + 9)
    return integrate.quad(squared, *ends, limit=400)[0] / n_levels


def test_the_default_masks_change_categories_as_documented() -> None:
    frame = people()
    release = masked(frame)
    expected = {"sex": kept_by_mask_alone(2.0, 2), "grade": kept_by_mask_alone(2.0, 5)}
    stated = ph.masking.masks_by_type.__doc__ or ""
    for key, share in expected.items():
        # 2 sets of 1200 draws; the association models add what they find by chance.
        assert abs(release.unchanged[key] - share) < 5 * np.sqrt(0.25 / 2400) + 0.02
        assert f"{share:.0%}".replace("%", " %") in stated
    assert release.unchanged["age"] < 0.15
    assert release.statement.left_as_they_were == ()
    assert "were replaced by draws, which can equal" in release.statement.text


def test_masks_that_change_nothing_are_not_called_a_replacement() -> None:
    """The control: at the published separation of 6 categories stay, and the statement says so."""
    frame = people()
    release = masked(frame, separation=6.0)
    text = " ".join(release.statement.text.split())
    assert release.statement.left_as_they_were == ("sex", "grade", "region")
    assert "**The columns sex, grade, region hold the respondents' own values in nearly" in text
    assert "The column age was replaced" in text
    share = f"{kept_by_mask_alone(6.0, 2):.1%}".replace("%", " %")
    assert share in (ph.masking.masks_by_type.__doc__ or "")


def test_the_owner_sees_the_share_left_unchanged_and_nobody_else(tmp_path: Path) -> None:
    frame = people(300)
    frame.loc[frame.index[:30], "region"] = None
    frame.loc[frame.index[:1], KEYS] = None  # seen: refused, though predictors are known
    imputation = ph.masking.MaskedImputation(
        keys=KEYS, masks=ph.masking.masks_by_type(frame, KEYS, types={"income": "continuous"}),
        n_synthetic=2, n_imputations=2, settings=QUICK,
    )  # fmt: skip
    release = imputation.release(frame, seed=1)
    for key in KEYS:
        same = total = 0
        for table in release.synthetic:
            for own, drawn in zip(frame[key], table[key], strict=True):
                if not pd.isna(own):
                    same, total = same + (own == drawn), total + 1
        assert release.unchanged[key] == pytest.approx(same / total)
    release.save(tmp_path / "out", report=False)
    words = (tmp_path / "out/public/risk_statement.md").read_text()
    assert not [key for key, share in release.unchanged.items() if f"{share:.0%}" in words]
    assert masked(people(30), separation=6.0).statement.left_as_they_were == ()  # of too few


def _by_comparator(frame: pd.DataFrame) -> ph.masking.MaskedRelease:
    return CartSynthesis(keys=KEYS, n_synthetic=2).release(frame, seed=1)


@pytest.mark.parametrize("make", [
    masked, _by_comparator,
    lambda frame: _by_comparator(pd.DataFrame(dict(frame.items()))).with_unsynthesized(frame),
    lambda frame: replace(_by_comparator(frame), synthetic=[frame.copy(), frame.copy()]),
])  # fmt: skip
def test_notes_on_a_table_are_in_no_masked_release(
    make: Callable[[pd.DataFrame], ph.masking.MaskedRelease], tmp_path: Path
) -> None:
    """Neither in memory nor on disk, where Parquet files would keep them."""
    frame = people(120).assign(grade=lambda own: own["grade"].cat.add_categories([CANARY]))
    frame.attrs["secret"] = CANARY
    release = make(frame)
    assert [table.attrs for table in release.synthetic] == [{}, {}]
    release.synthetic[0].attrs["since"] = CANARY
    for form in ("csv", "parquet"):
        release.save(tmp_path / form, file_format=form, report=False)
        files = [path for path in (tmp_path / form).rglob("*") if path.is_file()]
        assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert frame.attrs == {"secret": CANARY}
    frame.to_parquet(tmp_path / "control.parquet")  # the control: pandas itself keeps them
    assert CANARY.encode() in (tmp_path / "control.parquet").read_bytes()
