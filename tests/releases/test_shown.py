"""What results show in a notebook: escaped, short, and nothing confidential."""

import inspect
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.core import html


def test_text_is_escaped() -> None:
    assert "<b>" not in html.html_rows("<b>", {"<b>": "<b>"})


@pytest.mark.parametrize("kernel", [object(), None])
def test_a_notebook_draws_one_bar_where_none_is_given(kernel: object, monkeypatch: Any) -> None:
    """Without numbers of the data; what is called inside draws no other, a terminal none."""
    sent, told = list[Any](), list[Any]()
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel))
    put = SimpleNamespace(update=lambda data, **_: sent.append(data["text/html"]))
    display = SimpleNamespace(display=lambda data, **_: put.update(data) or put)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(html, "_PATIENCE", 0.05)

    @html.bar_in_notebooks
    def work(*, progress: Any = None, deep: bool = True) -> object:
        if progress:
            progress("scalar weight 0.4735 of <b>", 1, 4)
            any(sent or time.sleep(0.01) for _ in range(2000 * bool(kernel)))  # one long step
        return work(deep=False) if deep else progress

    assert work() is None
    bar = '<progress max="4" value="1" aria-label="scalar weight ... of &lt;b&gt;"></progress> '
    assert sent == ([f"{bar}scalar weight ... of &lt;b&gt;: 1 of 4", ""] if kernel else [])
    work(progress=lambda *step: told.append(step))
    assert (len(told), len(sent)) == (1, 2 if kernel else 0)


@pytest.mark.parametrize("room", ["", *ph.ROOMS])
def test_whatever_reports_progress_draws_it_in_a_notebook(room: str) -> None:
    """Functions and methods alike, but engines, which a release calls."""
    home = getattr(ph, room) if room else ph
    for name in {*home.__all__} - {"Engine", "ContinuingEngine"}:
        public = getattr(home, name)
        own = [(name, public), *inspect.getmembers(public, inspect.isfunction)]
        for label, function in own if callable(public) else []:
            if inspect.isfunction(function) and label != "make" and label[0] != "_":
                reports = "progress" in inspect.signature(function).parameters
                assert not reports or "@bar_in_notebooks" in inspect.getsource(function), label
