"""Options of commands stay whole where a line of code breaks: browsers break after a hyphen."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(content: str, **_: Any) -> str:
    """A hook of mkdocs: a span of its own for each option, which styles.css keeps whole."""
    return re.sub(r"(?<=[\s>(])--[a-z][a-z-]+", r'<span class="option">\g<0></span>', content)
