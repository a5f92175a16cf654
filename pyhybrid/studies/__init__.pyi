"""Public names of studies, loaded when they are first used."""

from .claims import summarize as summarize
from .comparing.comparison import Comparison as Comparison
from .comparing.curve import RiskUtilityCurve as RiskUtilityCurve
from .comparing.curve import risk_utility_curve as risk_utility_curve
from .runner import STUDIES as STUDIES
from .runner import StudyResult as StudyResult
from .runner import load_study as load_study
from .runner import run_study as run_study
from .study import Claim as Claim
from .study import Measured as Measured
from .study import Published as Published
from .study import Size as Size
from .study import Study as Study

__all__: list[str]
