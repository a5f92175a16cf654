"""Public names of engines, loaded when they are first used."""

from .base import ContinuingEngine as ContinuingEngine
from .base import Draws as Draws
from .base import Engine as Engine
from .base import EngineStatus as EngineStatus
from .base import Progress as Progress
from .base import Provenance as Provenance
from .base import SamplerSettings as SamplerSettings
from .base import StanProgram as StanProgram
from .base import WarmStart as WarmStart
from .choice import AUTOMATIC as AUTOMATIC
from .choice import ENGINES as ENGINES
from .choice import engine_by_name as engine_by_name
from .choice import resolve_engine as resolve_engine
from .convergence import ConvergenceRule as ConvergenceRule
from .convergence import Diagnostics as Diagnostics
from .convergence import diagnose as diagnose
from .programs import load_program as load_program
from .programs import parameter_names as parameter_names
from .programs import program_names as program_names

__all__: list[str]
