"""Public names of the measures, loaded when they are first used."""

from .combining import Combined as Combined
from .combining import combine_fully_synthetic as combine_fully_synthetic
from .combining import combine_multiple_imputation as combine_multiple_imputation
from .combining import combine_nested as combine_nested
from .combining import combine_noise_aware as combine_noise_aware
from .combining import combine_partially_synthetic as combine_partially_synthetic
from .estimates import Estimates as Estimates
from .estimates import avg_ecdf as avg_ecdf
from .estimates import estimates as estimates
from .estimates import max_ecdf as max_ecdf
from .matching import AttributeRisk as AttributeRisk
from .matching import MatchingRisk as MatchingRisk
from .matching import attribute_risk as attribute_risk
from .matching import match_counts as match_counts
from .matching import matching_risk as matching_risk
from .models import ModelUtility as ModelUtility
from .models import Pooled as Pooled
from .models import model_utility as model_utility
from .models import pool as pool
from .propensity import PropensityUtility as PropensityUtility
from .propensity import pmse as pmse
from .propensity import propensity_utility as propensity_utility
from .summaries import MEASURES as MEASURES
from .summaries import Measure as Measure
from .summaries import RiskSummary as RiskSummary
from .summaries import UtilitySummary as UtilitySummary
from .summaries import risk_summary as risk_summary
from .summaries import utility_summary as utility_summary
from .utility import ColumnUtility as ColumnUtility
from .utility import TableUtility as TableUtility
from .utility import column_utility as column_utility
from .utility import interval_overlap as interval_overlap
from .utility import standardised_difference as standardised_difference
from .utility import table_utility as table_utility

__all__: list[str]
