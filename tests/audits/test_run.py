"""`pyhybrid audit`: the same code as the audits in these tests, and it fails when it must."""

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.validation import audits
from pyhybrid.validation.audits import AuditFinding, AuditReport, censored_programs, run_audits
from pyhybrid.validation.audits.enumeration import censored_audits
from pyhybrid.validation.audits.noise import NOISE, noise_audit
from tests.conftest import command, require_opendp
from tests.refusals import fails, refuses

GOOD = AuditFinding(
    mechanism="good", relation="remove", method="exact", epsilon=1.0, loss=0.9,
    control="broken", control_loss=2.0,
)  # fmt: skip


def test_what_passes() -> None:
    assert GOOD.passed
    assert replace(GOOD, loss=1.0, control_loss=1.1).passed
    refuted, blind = replace(GOOD, loss=1.1), replace(GOOD, control_loss=1.0)
    for finding, words in ((refuted, "REFUTED: good"), (blind, "NOT SHOWN")):
        report = AuditReport(findings=(GOOD, finding), left_out=(), confidence=0.99)
        assert not report.passed
        assert words in report.verdict
    assert not AuditReport(findings=(), left_out=("all",), confidence=0.99).passed


@pytest.mark.samples
def test_censored_posteriors_and_programs_pass() -> None:
    found = [
        *censored_audits({"engine": "embedded", "seed": 1}),
        *censored_programs.program_audits(),
    ]
    assert [f.mechanism for f in found if not f.passed] == []
    assert {f.relation for f in found} == {"remove", "replace"}
    named = {f.mechanism.split("/")[1].split(".")[0] for f in found if "stan/" in f.mechanism}
    parts = {part for name in named for part in name.split("_and_")}  # of joint programs, too
    assert parts == set(ph.engines.program_names())


@pytest.mark.long
def test_a_program_that_does_not_clip_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit reads the program that is run: one whose cap is not applied does not pass."""

    def without_clip(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            program = make(*given, **named)
            text = program.text.replace("fmax(-cap_below, fmin(cap_above, ", "(1 * (")
            assert text != program.text
            return replace(program, text=text)

        return made

    for place in ("families.regression.load_program", "composite.steps.joint_program"):
        module, name = place.rsplit(".", 1)
        make = getattr(importlib.import_module(f"pyhybrid.models.{module}"), name)
        monkeypatch.setattr(f"pyhybrid.models.{place}", without_clip(make))
    monkeypatch.setattr(censored_programs, "_POINTS", 40)
    found = censored_programs.program_audits()
    assert [f.mechanism for f in found if f.holds] == []


def test_every_strict_mechanism_has_its_audit() -> None:
    names = {case.mechanism.split(",")[0] for case in NOISE}
    primitives = {name for name in ph.primitives.__all__ if name.islower()}
    assert primitives | {"PerturbedHistogram", "NoisyMarginals"} == names


ELSEWHERE = ("laplace_counts", "randomized_response", "PerturbedHistogram")  # test_noise_audit.py


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [case for case in NOISE if not case.mechanism.startswith(ELSEWHERE)],
    ids=lambda case: f"{case.mechanism}, {case.relation}",
)
def test_noise_passes(case: Any) -> None:
    require_opendp()
    found = noise_audit(replace(case, share=0.25), runs=3000, confidence=audits.CONFIDENCE)
    assert found.holds
    if case.control_times > 2:
        assert found.control_caught


def test_a_mechanism_with_too_little_noise_is_refuted() -> None:
    require_opendp()
    case = NOISE[0]

    def understated(database: Any, epsilon: float, runs: int) -> np.ndarray:
        return case.score(database, 2 * epsilon, runs)

    found = noise_audit(replace(case, score=understated), runs=3000, confidence=audits.CONFIDENCE)
    assert not found.holds


def audit(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    return command("audit", "--workers", "1", *options), capsys.readouterr().out


@pytest.mark.parametrize(("finding", "code", "words"), [
    (GOOD, 0, "caught its broken control"), (replace(GOOD, loss=1.5), 1, "REFUTED"),
    (replace(GOOD, control_loss=0.5), 1, "control missed"),
])  # fmt: skip
def test_the_command(
    finding: AuditFinding, code: int, words: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(
        audits, "_steps", lambda *_: [("one", lambda: [GOOD]), ("", lambda: [finding])]
    )
    found, out = audit(capsys)
    assert found == code
    assert words in " ".join(out.split())
    found, out = audit(capsys, "--json", "-")
    content = json.loads(out)
    assert (found, content["passed"]) == (code, code == 0)
    assert content["audits"][1]["loss"] == finding.loss


def test_what_cannot_run_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[AuditFinding]:
        raise EngineUnavailable("OpenDP must be installed: pip install 'pyhybrid[dp]'")

    monkeypatch.setattr(audits, "_steps", lambda *_: [("one", lambda: [GOOD]), ("noise", missing)])
    report = run_audits()
    assert report.passed
    assert report.left_out == ("noise: OpenDP must be installed: pip install 'pyhybrid[dp]'",)
    monkeypatch.setattr(audits, "_steps", lambda *_: [("an engine", missing)])
    fails(EngineUnavailable, "", run_audits)


def test_too_few_runs_are_refused() -> None:
    refuses("runs must be a whole number >= 3000", run_audits, runs=100)
