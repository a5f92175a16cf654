"""Log-normal regression of positive amounts; program stan/normal_regression.stan."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.families.normal_regression import NormalRegression
from pyhybrid.models.grid import NormalForm

__all__ = ["LogNormal"]


@dataclass(frozen=True)
class LogNormal(NormalRegression):
    r"""A positive amount: log(y / unit) is normal, with mean :math:`o_i + x_i'\beta`.

    Its deviation is sigma. The family that brms calls ``lognormal``. Priors: independent normals on
    beta, as `pyhybrid.Bernoulli` has; sigma ~ half-t_3(0, 1).

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"income ~ age + education"``.
    prior : {"normal", "published"}, default "normal"
        On the coefficients, of which the intercept is about the mean of log(y / unit): give a
        `unit` that is the size of a usual amount. See
        `pyhybrid.models.families.coefficients.LinearModel`.

    Other parameters as in `pyhybrid.models.families.transformed.TransformedModel`, whose
    `transform` is "log" here.
    """

    _: KW_ONLY
    transform: str = "log"
    prior: str = "normal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transform != "log":
            raise InvalidInput(
                f"transform of LogNormal must be 'log': found {self.transform!r}; take "
                "NormalRegression for others"
            )

    def grid_form(self, columns: tuple[str, ...]) -> NormalForm | None:
        """With an intercept alone, under either prior."""
        if columns != ("Intercept",):
            return None
        return NormalForm(min_sd=self.min_sd, prior_sd=self.intercept_prior_sd)
