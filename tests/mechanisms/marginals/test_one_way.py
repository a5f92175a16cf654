"""A column alone: smoothing of noisy counts, merging of bins, draws within them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.log_linear import Measurement
from pyhybrid.mechanisms.marginals.one_way import OneWay, blocks, merged_domain, smooth

GRID = tuple(np.concatenate([[0.0], 100 * np.expm1(np.arange(0.1, 5.0, 0.1))]).tolist())
AMOUNTS = ColumnDomain(levels=(0,), bins=GRID, missing=True)
LAW = stats.gamma(2, scale=400)


def counts(n: int) -> np.ndarray:
    """Of a level of zeros, amounts by a gamma law, and missing values."""
    inside = np.diff(LAW.cdf(GRID))
    return n * np.array([0.1, *(0.85 * inside / inside.sum()), 0.05])


CLIQUE = ("y", "")


def of_noise(
    noisy: np.ndarray, sd: float, domain: ColumnDomain, n: int, *more: Measurement
) -> OneWay:
    own = Measurement(noisy=noisy[:, None], clique=CLIQUE, stddev=np.full((noisy.size, 1), sd))
    return smooth([own, *more], domain, n)


def in_blocks(wide: np.ndarray, sd: float, domain: ColumnDomain) -> Measurement:
    stddev = np.full((wide.size, 1), sd)
    return Measurement(noisy=wide[:, None], clique=CLIQUE, stddev=stddev, query=blocks(domain))


def test_smoothing_beats_the_noise_and_leaves_few_records_in_the_tail() -> None:
    """Against counts above 0 as they are, over eight noises: .69 of the error (deviates by
    .03 over noises), .32 (by .05) of what noise puts where no record is."""
    truth, sd, tail = counts(4000), 10.0, slice(-12, -1)
    errors, of_tail = [], []
    for seed in range(8):
        noisy = truth + np.random.default_rng(seed).normal(0, sd, truth.size)
        found = of_noise(noisy, sd, AMOUNTS, 4000)
        plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        errors.append([np.abs(own - truth / 4000).sum() for own in (found.shares, plain)])
        of_tail.append([own[tail].sum() for own in (found.shares, plain)])
        assert abs(found.shares[0] - 0.1) < 5 * sd / 4000
        assert abs(found.shares[-1] - 0.05) < 5 * sd / 4000
    for found_, least in ((errors, 0.83), (of_tail, 0.57)):
        smoothed, plainly = np.mean(found_, axis=0)
        assert smoothed < least * plainly
    drawn = np.array(found.sample(50, np.random.default_rng(1)))
    assert drawn.shape == (50, AMOUNTS.n_cells)
    assert np.abs(drawn.sum(axis=1) - 1).max() < 1e-12
    assert drawn.std(axis=0).min() > 0
    exact = of_noise(counts(200_000), 0.0, AMOUNTS, 200_000)
    assert np.abs(exact.shares - truth / 4000).max() < 1e-3, "without noise counts come back"


@pytest.mark.long
def test_empty_cells_of_a_long_range_do_not_move_a_mean() -> None:
    """A rare count declared up to 200, twelve noises as large as its third cell: the mean within a
    tenth, nearer if half of the price is for blocks, 50 times as far if cells are cut at zero."""
    values, n, sd = np.arange(200), 4400, 20.0
    truth = n * stats.nbinom(0.4, 0.65).pmf(values)
    domain = ColumnDomain(bins=tuple(range(201)))
    query, off = blocks(domain), []
    assert (np.diff(query.sum(axis=1)[1:-1]) >= 0).all()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noisy = truth + rng.normal(0, sd, truth.size)
        found = of_noise(noisy, sd, domain, n).shares
        half = sd * np.sqrt(2)
        both = [own + rng.normal(0, half, own.size) for own in (truth, query @ truth)]
        wide = of_noise(both[0], half, domain, n, in_blocks(both[1], half, domain))
        plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        own = found, wide.shares, plain
        off.append([p @ values / (truth @ values / n) - 1 for p in own])
    alone, coarse, cut = np.sqrt(np.mean(np.square(off), axis=0))
    assert coarse < alone < 0.15
    assert cut > 20 * alone


def test_records_far_out_are_found_where_none_are_expected() -> None:
    """Seen: of 120 of 4,856 records at 98, under noise of 15, none were left."""
    domain = ColumnDomain(bins=tuple(range(100)), center=2, unit=2)
    truth = 4736 * stats.nbinom(2, 0.4).pmf(np.arange(99)) + 120 * (np.arange(99) == 98)
    tables = truth, blocks(domain) @ truth
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noisy, wide = (own + rng.normal(0, 15, own.size) for own in tables)
        found = of_noise(noisy, 15.0, domain, 4856, in_blocks(wide, 15.0, domain))
        assert abs(4856 * found.shares[-30:].sum() - 120) < 75


@pytest.mark.long
def test_a_center_says_where_numbers_are_that_noise_hides() -> None:
    """150 records in 180 cells, noise ten times a cell: the mean is half as far off as without the
    center, over ten noises; of 200,000 records without noise a wrong one changes nothing."""
    values, sd, n = np.arange(180), 30.0, 150
    shares = stats.gamma(1.5, scale=20).pdf(values + 0.5)
    shares /= shares.sum()
    plain = ColumnDomain(bins=tuple(range(181)))
    told, wrong = (replace(plain, center=center, unit=20) for center in (20, 150))
    off = []
    for seed in range(10):
        noisy = n * shares + np.random.default_rng(seed).normal(0, sd, values.size)
        made = [of_noise(noisy, sd, own, n) for own in (plain, told)]
        off.append([own.shares @ values / (shares @ values) - 1 for own in made])
    without, beside = np.sqrt(np.mean(np.square(off), axis=0))
    assert beside < 0.6 * without
    many = of_noise(200_000 * shares, 0.0, wrong, 200_000)
    assert np.abs(many.shares - shares).max() < 1e-3


def test_merged_bins_are_few_of_the_own_edges_and_none_is_thin() -> None:
    shares = counts(1) / counts(1).sum()
    few = merged_domain(AMOUNTS, shares, 10)
    assert set(few.bins) < set(AMOUNTS.bins)
    assert (few.bins[0], few.bins[-1]) == (GRID[0], GRID[-1])
    assert (few.levels, few.missing) == (AMOUNTS.levels, True)
    held = np.diff(LAW.cdf(few.bins))
    assert 6 <= held.size <= 10
    assert held.min() > 0.9 * 0.25 / 10
    assert merged_domain(AMOUNTS, shares, len(GRID)) is AMOUNTS
    own = ColumnDomain(bins=GRID)  # of a column in one of them two are left
    assert all(merged_domain(own, np.eye(own.n_cells)[k], 12).n_cells >= 2 for k in (0, 20, 48))
