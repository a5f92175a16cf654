"""The table of the owner's report that explains every field of a charge."""

from __future__ import annotations

from collections.abc import Mapping

from pyhybrid.releases.release import Release
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Section, Table

__all__ = ["charge_section"]

_CHARGE = {
    "mechanism": "How the record weights come from the data.",
    "epsilon": "Privacy loss of all released data sets together, nats, rounded up. From 0; smaller "
    "is safer.",
    "accounting": "How epsilon was counted. Gaussian: by how much a record's log-likelihood varies "
    "over the posterior, an epsilon at delta. Range: by how far it moves at most. Lipschitz: by "
    "how large it is, as in the papers. The two other numbers stand below.",
    "delta": "Probability by which the factor exp(epsilon) may be exceeded, a public number in "
    "[0, 1 / n); 0 but for Gaussian accounting and Gaussian noise. Smaller is safer.",
    "rho": "Zero-concentrated privacy of the noise, nats: rho of several releases adds. From 0; "
    "smaller is safer.",
    "epsilon_range": "Epsilon of the same release by range accounting, without a delta.",
    "epsilon_lipschitz": "Epsilon of the same release by the papers' accounting, 2 Δ for a draw.",
    "mu": "What one draw tells of the record it tells most of, in the way that a normal value with "
    "deviation 1 tells whether its mean is 0 or mu: the upper end. From 0; below 0.5 little, "
    "above 3 nearly all. Draws add by squares.",
    "mu_standard_error": "Monte Carlo standard error of mu. More draws make it smaller.",
    "loss_range": "Confidential. Largest range R of any record's weighted log-likelihood over the "
    "draws, nats. From 0; smaller is safer.",
    "support": "Declared records that could have been; epsilon, bound, range and mu are then the "
    "largest over them and over the records present.",
    "epsilon_present": "Epsilon of the records present alone, where a support is declared.",
    "mu_present": "Mu of the records present alone, where a support is declared.",
    "kind": "Asymptotic local: holds for this database and contracts to a global guarantee as the "
    "number of records grows. Strict: holds for every database.",
    "relation": "Neighboring databases of the guarantee: one record removed, or one replaced.",
    "n_synthetic": "Synthetic data sets released, m. From 1.",
    "n_draws_released": "Posterior draws the sets were simulated from: 1 or m. Epsilon grows in "
    "proportion to it, by Gaussian accounting about as its square root.",
    "bound": "Confidential. Overall Lipschitz bound Δ of one draw, nats: the largest absolute "
    "weighted log-likelihood of any record in any draw. From 0; smaller is safer.",
    "n_draws": "Posterior draws S from which the bound was computed. More draws come nearer to the "
    "largest possible bound, from below.",
    "draw_quantile": "Share of draws kept, in (0, 1]. Below 1 the bound may fail, with the "
    "probability that the statement gives.",
    "cap": "Largest log-likelihood of a record, M, nats, if it was censored or truncated. Smaller "
    "is safer.",
    "safety_factor": "Factor s in epsilon, from 1, that turns a local bound into a global one. "
    "Larger is safer.",
    "density_above_one": "Whether a record's term can be above 0, as densities and terms less a "
    "center can; the replace relation then costs twice as much by the Lipschitz bound.",
    "converged": "Whether the sampler met the convergence rule. If not, epsilon may be too small.",
}
_WITHOUT_FIT = {
    "mechanism": "What made the sets: no model, and no record weights.",
    "n_draws_released": "Noisy histograms the sets were drawn from. Epsilon grows in proportion to "
    "it.",
    "bound": "Half the epsilon of one noisy histogram, nats. From 0; smaller is safer.",
}
_OF_STEPS = {
    "mechanism": "What made the sets: the steps of a sequence, each with a mechanism of its own.",
    "n_draws_released": "Posterior draws of each step that the sets were simulated from: 1 or m.",
    "bound": "Confidential. Overall Lipschitz bound Δ of one draw of all steps, nats: the sum over "
    "the steps. From 0; smaller is safer.",
}
_OF_SUPPORTS = {"support", "epsilon_present", "mu_present"}
_OF_RHO = {"delta", "rho"}
_OF_FITS = {
    "accounting",
    "delta",
    "epsilon_range",
    "epsilon_lipschitz",
    "mu",
    "mu_standard_error",
    "loss_range",
    "support",
    "epsilon_present",
    "mu_present",
    "n_draws",
    "draw_quantile",
    "cap",
    "safety_factor",
    "density_above_one",
    "converged",
}


def charge_section(releases: Mapping[str, Release]) -> Section:
    """The table of the charges, the last release first."""
    charges = [release.charge for release in releases.values()][::-1]
    fitted = any(release.confidential.alpha.size > 0 for release in releases.values())
    stepped = any(release.parts for release in releases.values())
    meanings = _CHARGE if fitted else {**_CHARGE, **(_OF_STEPS if stepped else _WITHOUT_FIT)}
    declared = any(charge.support is not None for charge in charges)
    show = dict.fromkeys(("epsilon", "epsilon_range", "epsilon_lipschitz"), _cost_text)
    by_rho = any(charge.rho is not None for charge in charges)
    shown = {
        field
        for field in meanings
        if (fitted or stepped or field not in _OF_FITS) and (declared or field not in _OF_SUPPORTS)
    }
    shown = shown | _OF_RHO if by_rho else shown - {"rho"}
    rows = [
        [
            field,
            *(show.get(field, number_text)(getattr(charge, field)) for charge in charges),
            meaning,
        ]
        for field, meaning in meanings.items()
        if field in shown
    ]
    table = Table(
        caption="The privacy charge. Every number, its range and its direction.",
        header=["Quantity", *list(releases)[::-1], "What it is"],
        rows=rows,
    )
    return Section(heading="Privacy charge", tables=[table])


def _cost_text(epsilon: float | None) -> str:
    return "–" if epsilon is None else str(epsilon)
