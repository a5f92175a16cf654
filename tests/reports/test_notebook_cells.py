"""Cells of a notebook that was opened with nothing but pyhybrid: a picture, tables, no red text."""

import ast
import base64
import importlib.util
from pathlib import Path

import pytest

from tests.conftest import require

CELLS = [
    "import numpy as np, pandas as pd, pyhybrid as ph\n"
    "from pyhybrid.engines import cmdstan, SamplerSettings\n"
    "cmdstan._cmdstanpy()\n"
    "df = pd.DataFrame({'visits': np.random.default_rng(1).poisson(3, 60)})\n"
    "asked = dict(settings=SamplerSettings(warmup=300, draws=300), engine='embedded', refits=0)\n"
    "release = ph.Unweighted(ph.Poisson('visits ~ 1')).release(\n"
    "    df, n_synthetic=1, seed=1, on_not_converged='warn', **asked)",
    "release",
    "release.charge",
    "ph.reports.plot_release(release)",
    "release.fit.draws.to_inference_data()",
    "from pyhybrid.core import html\n"
    "html._PATIENCE, html._EVERY = 0, 60\n"
    "sent, hook = [], lambda message: sent.append(message) or message\n"
    "get_ipython().display_pub.register_hook(hook)\n"
    "ph.Unweighted(ph.Poisson('visits ~ 1')).release(df, **asked, on_not_converged='warn')\n"
    "[(each['msg_type'], each['content']['data']['text/html']) for each in sent]",
]


@pytest.mark.long
def test_cells_show_results_a_bar_and_a_picture_and_no_red_text(tmp_path: Path) -> None:
    """The picture is there without pyplot, which would teach the notebook to show figures."""
    libraries = [importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel")]
    require(all(libraries), "notebooks cannot be run: pip install 'pyhybrid[report]'")
    import nbclient
    import nbformat

    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = [cell.outputs for cell in made.cells]
    assert [each for cell in outputs for each in cell if each.get("name") == "stderr"] == []
    for cell in (1, 2, 4):
        (shown,) = outputs[cell]
        assert "text/html" in shown["data"]
    png = base64.b64decode(outputs[3][0]["data"]["image/png"])
    assert png.startswith(b"\x89PNG") and len(png) > 5_000  # noqa: PT018
    bar, told = outputs[5]
    assert bar["data"]["text/html"] == "", "progress is a bar, and then gone"
    sent = ast.literal_eval(told["data"]["text/plain"])
    assert {kind for kind, _ in sent[1:]} == {"update_display_data"} != {sent[0][0]}
    assert any(drawn.startswith('<progress max="2400" value="2400"') for _, drawn in sent)
