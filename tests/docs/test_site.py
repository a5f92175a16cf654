"""What docs/ adds to mkdocs: equations as MathML, and R's help pages beside the Python names."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

from docs import r_pages
from tests.conftest import require
from tests.refusals import fails

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "pages" / "reference"
EXPORTED = re.findall(r"^export\((\w+)\)$", (ROOT / "NAMESPACE").read_text(), re.MULTILINE)


def _with_r(name: str) -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=f"reference/{name}.md"))
    return r_pages.on_page_markdown((REFERENCE / f"{name}.md").read_text(), page=page)


def test_every_r_function_has_its_help_page_and_stands_beside_its_python_twin() -> None:
    helped = _with_r("r")
    assert len(EXPORTED) > 40
    assert [name for name in EXPORTED if f'<a id="{name}"></a>' not in helped] == []
    twins = "\n".join(_with_r(path.stem) for path in REFERENCE.glob("*.md") if path.stem != "r")
    module = r"\n {4}options:.*show_root_heading: false"
    python = set(re.findall(rf"^::: pyhybrid\.[\w.]*\.(\w+)$(?!{module})", twins, re.MULTILINE))
    beside = set(re.findall(r"^In R: \[`\w+\(.*\)`\]\(r\.md#(\w+)\)$", twins, re.MULTILINE))
    assert beside == python & set(EXPORTED)
    assert {"lipschitz_bounds", "gaussian_mu", "combine_nested", "masked_normal"} <= beside


def test_a_help_page_is_read_whole_and_unknown_markup_refused_by_name() -> None:
    page = r_pages.help_pages()["lipschitz_bounds"]
    assert page.call("lipschitz_bounds") == (
        "lipschitz_bounds(log_lik, alpha = NULL, draw_quantile = 1)"
    )
    text = r_pages.page_of(page)
    assert r"$D_i = \max_s |\alpha_i f_{si}|$" in text
    assert "\n- `draw_quantile`: q in (0, 1]." in text
    assert "lipschitz_bounds(log_lik, alpha = c(1, 0.5))" in text
    shown = "\n".join(map(r_pages.page_of, r_pages.help_pages().values()))
    assert not re.search(r"\\(code|item|link|eqn|verb)\b", shown)
    fails(ValueError, r"does not know \\dfn", r_pages.in_markdown, r"a \dfn{word}")
    fails(ValueError, "not closed", r_pages.in_markdown, r"\code{a")


def test_equations_become_mathml() -> None:
    libraries = [importlib.util.find_spec(name) for name in ("griffe", "latex2mathml")]
    require(all(libraries), "the libraries of the site are missing: pip install 'pyhybrid[docs]'")
    from docs import equations

    text = equations.in_markdown("Cost\n\n.. math::\n\n    a_i \\le\n    b\n\nof :math:`x\n_i`.\n")
    assert text == "Cost\n\n\n$$\na_i \\le b\n$$\n\nof $x _i$.\n"
    html = equations.on_page_content(
        r'<p><span class="arithmatex">\(a &lt; \frac{b}{c}\)</span></p>'
        '\n<div class="arithmatex">\\[\n\\sum_i x_i\n\\]</div>'
    )
    assert html.count("<math") == html.count("</math>") == 2
    assert 'display="block"' in html
    assert "<mfrac>" in html
    assert "arithmatex" not in html
