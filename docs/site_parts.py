"""Hooks of mkdocs: executed notebooks as files of the site, and options of commands kept whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, *, config: Any) -> Files:
    """The notebooks' pages, which lie beside those of the documentation."""
    for page in sorted((Path(__file__).parent / "notebooks").glob("*.html")):
        files.append(File.generated(config, f"notebooks/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to them as they are in the site."""
    return markdown.replace("../notebooks/", "notebooks/")


def on_page_content(content: str, **_: Any) -> str:
    """A span for each option, which styles.css keeps whole: browsers break after a hyphen."""
    return re.sub(r"(?<=[\s>(])--[a-z][a-z-]+", r'<span class="option">\g<0></span>', content)
