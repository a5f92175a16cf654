"""Public names of the reports, loaded with their figures when they are first used."""

from .checklist import review_checklist as review_checklist
from .columns import plot_release as plot_release
from .masking import masked_pages as masked_pages
from .release import release_pages as release_pages

__all__: list[str]
