"""Findings of audits: the loss that was found, and whether a broken mechanism was seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

EPSILON = 1.0
"""Stated epsilon of most audits, nats."""
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """One mechanism held against its stated epsilon, and one that was broken on purpose.

    Attributes
    ----------
    mechanism : str
    relation : {"remove", "replace"}
    method : {"exact", "sampled"}
        Enumeration of all neighbors of a small domain, or a lower confidence bound from runs.
    epsilon : float
        Stated, nats.
    loss : float
        Largest privacy loss found, nats: exact over the domain, or at least this much with the
        report's confidence. At most `epsilon` for an honest mechanism.
    control : str
        What was broken in the negative control.
    control_loss : float
        The same of the control; above `epsilon` if the audit sees that it is broken.
    """

    mechanism: str
    relation: str
    method: str
    epsilon: float
    loss: float
    control: str
    control_loss: float

    @classmethod
    def exact(
        cls,
        mechanism: str,
        relation: str,
        loss: float,
        control: str,
        control_loss: float,
        *,
        epsilon: float = EPSILON,
    ) -> AuditFinding:
        """Of an enumeration."""
        return cls(
            mechanism=mechanism,
            relation=relation,
            method="exact",
            epsilon=epsilon,
            loss=loss,
            control=control,
            control_loss=control_loss,
        )

    @property
    def holds(self) -> bool:
        """True unless the loss exceeds epsilon, rounding of floats aside."""
        return self.loss <= self.epsilon * _ROUNDING

    @property
    def control_caught(self) -> bool:
        """True if the broken mechanism was refuted."""
        return self.control_loss > self.epsilon * _ROUNDING

    @property
    def passed(self) -> bool:
        """The mechanism holds, and the audit could have seen that it does not."""
        return self.holds and self.control_caught


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """All audits of one run.

    Attributes
    ----------
    findings : tuple of AuditFinding
    left_out : tuple of str
        Audits that could not run, with the cause and the remedy.
    confidence : float
        Of each sampled lower bound.
    """

    findings: tuple[AuditFinding, ...]
    left_out: tuple[str, ...]
    confidence: float

    @property
    def passed(self) -> bool:
        """Every audit that ran has passed, and at least one has run."""
        return bool(self.findings) and all(finding.passed for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence."""
        refuted = [f.mechanism for f in self.findings if not f.holds]
        blind = [f.mechanism for f in self.findings if f.holds and not f.control_caught]
        if refuted:
            return f"REFUTED: {', '.join(refuted)} cost more than the epsilon that is stated"
        if blind:
            return f"NOT SHOWN: the broken control was not caught for {', '.join(blind)}"
        return (
            f"{len(self.findings)} audits found no loss above the stated epsilon, and each caught "
            "its broken control"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        rows = [
            {**asdict(f), "holds": f.holds, "control_caught": f.control_caught}
            for f in self.findings
        ]
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "left_out": list(self.left_out),
            "audits": rows,
        }
