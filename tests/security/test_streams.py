"""Random streams of whole releases: none is used twice, the same seed gives the same bytes."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.core.randomness import Streams, streams
from tests.security.test_leaks import MODEL, SETTINGS, mechanisms, people

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*did not converge", "ignore:re-weighting found no weights"
)
NOISY = ("perturbed_histogram", "noisy_marginals", "whole table")  # by OpenDP: no seed reaches it
SEEDED = [name for name in mechanisms() if name not in NOISY]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Every stream that is asked for: by a generator, an engine or a child; its root; its name."""
    found: list[tuple[str, int, str]] = []
    for kind in ("generator", "engine_seed", "child"):
        original = getattr(Streams, kind)

        def noted(self: Streams, name: str, kind: str = kind, original: Any = original) -> Any:
            found.append((kind, self.entropy, name))
            return original(self, name)

        monkeypatch.setattr(Streams, kind, noted)
    return found


@pytest.mark.parametrize("name", SEEDED)
def test_no_stream_of_a_release_serves_two_purposes(name: str, asked: list[Any]) -> None:
    mechanisms()[name](people(30))
    generators = [(root, stream) for kind, root, stream in asked if kind == "generator"]
    engines = {(root, stream) for kind, root, stream in asked if kind == "engine_seed"}
    children = {(root, f"child/{stream}") for kind, root, stream in asked if kind == "child"}
    # Re-weighting compares its estimates on common random numbers; none of them is released.
    drawn = [stream for stream in generators if stream[1] != "re-weighting estimates"]
    assert len(drawn) >= 2
    assert len(set(drawn)) == len(drawn), "each draws from its start: once only"
    assert engines
    for one, other in itertools.combinations((set(generators), engines, children), 2):
        assert one & other == set()
    states = {
        tuple(Streams(entropy=root, seeded=True)._sequence(stream).generate_state(8))
        for root, stream in {*generators, *engines, *children}
    }
    assert len(states) == len({*generators, *engines, *children})


def test_the_check_sees_a_stream_that_is_used_twice(asked: list[Any]) -> None:
    source = streams(1)
    assert source.generator("a").random() == source.generator("a").random()
    assert len(set(asked)) < len(asked)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


@pytest.mark.parametrize("name", SEEDED)
def test_same_seed_same_bytes(name: str, tmp_path: Path) -> None:
    make = mechanisms()[name]
    for place in ("one", "two"):
        make(people(30)).save(tmp_path / place, report=False)
    one, two = contents(tmp_path / "one/public"), contents(tmp_path / "two/public")
    assert one == two
    assert [*one] != []
    records = [tmp_path / place / "confidential/records.csv" for place in ("one", "two")]
    assert records[0].read_bytes() == records[1].read_bytes()
    statement = one["privacy_statement.md"].decode()
    assert "it must stay secret" in statement
    assert "operating system's entropy" not in statement


def test_without_a_seed_the_system_is_asked_and_no_release_comes_twice() -> None:
    how: Any = {"engine": "embedded", "settings": SETTINGS, "on_not_converged": "warn",
                "refits": 0}  # fmt: skip
    made = [ph.Unweighted(MODEL).release(people(30), **how) for _ in range(2)]
    assert not made[0].synthetic[0].equals(made[1].synthetic[0])
    assert made[0].confidential.entropy != made[1].confidential.entropy
    assert all(release.confidential.entropy > 2**64 for release in made)
    assert "operating system's entropy" in made[0].statement
    assert "stay secret" not in made[0].statement
