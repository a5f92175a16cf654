"""The papers' studies, one command each, beside the published numbers.

A study is data (settings, sizes, published numbers) and one function that measures one database;
`runner` runs it and `reproduction` sets the results beside what was published.
"""

from __future__ import annotations

from pyhybrid.studies.comparing.comparison import Comparison
from pyhybrid.studies.comparing.curve import RiskUtilityCurve, risk_utility_curve
from pyhybrid.studies.runner import STUDIES, StudyResult, load_study, run_study
from pyhybrid.studies.study import Claim, Measured, Published, Size, Study, summarize

__all__ = [
    "STUDIES",
    "Claim",
    "Comparison",
    "Measured",
    "Published",
    "RiskUtilityCurve",
    "Size",
    "Study",
    "StudyResult",
    "load_study",
    "risk_utility_curve",
    "run_study",
    "summarize",
]
