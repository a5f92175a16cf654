"""Every entry point with its strategy and its check."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.fuzzing import command_line, files, measures, plans, releases, surveys


@dataclass(frozen=True)
class EntryPoint:
    """Cases of one entry point; `check` is True for a valid result, False for a typed error. `cost`
    is CPU in milliseconds for a case, roughly: what a test's number of examples goes by."""

    cases: st.SearchStrategy[Any]
    check: Callable[[Any], bool]
    cost: int


ENTRY_POINTS: dict[str, EntryPoint] = {
    **{
        name: EntryPoint(releases.release_cases(name), releases.check_release_case, 30)
        for name in releases.MECHANISMS
    },
    "synthesize_by_formula": EntryPoint(releases.counted_cases(), releases.check_counted_case, 60),
    "SequentialSynthesis": EntryPoint(releases.sequences(), releases.check_sequence, 70),
    "PerturbedHistogram": EntryPoint(releases.histograms(), releases.check_histogram, 8),
    "NoisyMarginals": EntryPoint(plans.marginals(), plans.check_marginals, 50),
    "Table": EntryPoint(plans.tables(), plans.check_plan, 50),
    "formula": EntryPoint(measures.designs, measures.check_design, 5),
    "CSV file": EntryPoint(st.tuples(st.just("csv"), files.csv_bytes()), files.check_table_file, 4),
    "Parquet file": EntryPoint(
        st.tuples(st.just("parquet"), files.parquet_bytes()), files.check_table_file, 4
    ),
    **{
        f"stored {kind}": EntryPoint(files.damages(kind), files.check_damage, 12)
        for kind in files.SAVED
    },
    "matching_risk": EntryPoint(measures.risk_cases(), measures.check_matching, 6),
    "utility_summary": EntryPoint(measures.utility_cases(), measures.check_utility, 50),
    "pool": EntryPoint(measures.pool_cases(), measures.check_pool, 2),
    "MaskedImputation": EntryPoint(measures.mask_cases(), measures.check_mask, 60),
    "SurveyDesign": EntryPoint(surveys.designs(), surveys.check_design, 5),
    "afterwards": EntryPoint(surveys.changes(), surveys.check_changes, 15),
    "command line": EntryPoint(command_line.calls(), command_line.check_call, 60),
}
