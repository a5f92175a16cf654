"""The papers' studies, one command each, beside the published numbers.

A study is data (settings, sizes, published numbers) and one function that measures one database;
`runner` runs it and `reproduction` sets the results beside what was published.
"""

from __future__ import annotations

from pyhybrid.studies.comparing.comparison import Comparison
from pyhybrid.studies.comparing.curve import RiskUtilityCurve, risk_utility_curve
from pyhybrid.studies.counts import STUDY_A, STUDY_B, STUDY_C, STUDY_D
from pyhybrid.studies.income import STUDY_E
from pyhybrid.studies.masked import STUDY_I
from pyhybrid.studies.open_questions import STUDY_K, STUDY_L
from pyhybrid.studies.registry import STUDY_J
from pyhybrid.studies.runner import StudyResult, load_study, run_study
from pyhybrid.studies.strict import STUDY_F, STUDY_G, STUDY_H
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

_ALL = (
    STUDY_A, STUDY_B, STUDY_C, STUDY_D, STUDY_E, STUDY_F, STUDY_G, STUDY_H, STUDY_I, STUDY_J,
    STUDY_K, STUDY_L,
)  # fmt: skip
STUDIES = {study.name: study for study in _ALL}
"""Studies by name."""
