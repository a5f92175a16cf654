"""Public names of rbridge, loaded when they are first used."""

from .conversion import RError as RError
from .conversion import from_r as from_r
from .conversion import to_r as to_r
from .session import RStatus as RStatus
from .session import call_r as call_r
from .session import collect as collect
from .session import r_code as r_code
from .session import r_status as r_status
from .session import start_r as start_r

__all__: list[str]
