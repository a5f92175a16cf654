"""A Stan program that pyhybrid writes around what a user says of one record.

The user's text has these blocks, in any order:

=========================  =====================================================================
functions                  functions of the user's (optional)
data                       constants, public and known beforehand (optional)
record                     what one record has: the outcome, and what is published beside it
parameters                 as in Stan
transformed parameters     as in Stan (optional)
prior                      statements as in Stan's model block
log_lik                    the body of a function that returns the log-likelihood of one record
replicate                  the body of a function that returns an outcome drawn anew
generated quantities       as in Stan, of parameters and constants (optional)
=========================  =====================================================================

What pyhybrid writes keeps the records in arrays whose names the text cannot hold. So the outcome is
in scope in log_lik alone, where it is an argument, with what else the one record has; weights,
cap and center are in scope nowhere. Nothing has to be tried out: what is not in scope does not
compile, whatever the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.programs import load_function
from pyhybrid.models.stan_program.stan_text import (
    Declared,
    Token,
    blocks_of,
    declarations,
    names_in,
    tokens_of,
    written,
)
from pyhybrid.models.stan_program.total_likelihoods import (
    RELIED_ON,
    Function,
    functions_of,
    guarded,
    guards,
    reached,
    why_not_total,
)

__all__ = ["OURS", "REPLICATE", "ComposedText"]

OURS = "pyhybrid_"
"""What names of pyhybrid's begin with, and no name of the user's."""
REPLICATE = "pyhybrid_replicate"
_BLOCKS = (
    "functions", "data", "record", "parameters", "transformed parameters", "prior", "log_lik",
    "replicate", "generated quantities",
)  # fmt: skip
_NEEDED = ("record", "parameters", "prior", "log_lik", "replicate")
_NOWHERE = {
    **dict.fromkeys(
        ("reject", "fatal_error"),
        "ends an evaluation as a density of 0 does, which no cap bounds: return "
        "negative_infinity() from log_lik in its place",
    ),
    **dict.fromkeys(("print", "profile"), "shows values of records: leave it out"),
    **dict.fromkeys(
        ("log_lik", "pseudo_log_lik", "get_lp"), "is a name of the program around: take another"
    ),
}
_CLIP = (
    "pyhybrid_reference, pyhybrid_unit, pyhybrid_n_units, 0, 0, 0,\n"
    "                             pyhybrid_use_cap, pyhybrid_cap_below, pyhybrid_cap_above"
)
_CAP = (
    "  int<lower=0, upper=1> pyhybrid_use_cap;\n"
    "  real<lower=0> pyhybrid_cap_below;\n"
    "  real<lower=0> pyhybrid_cap_above;\n"
    "  vector[pyhybrid_n] pyhybrid_reference;       // log_lik at the center, or 0\n"
    "  int<lower=0> pyhybrid_n_units;\n"
    "  array[pyhybrid_n] int<lower=0> pyhybrid_unit;\n"
)


@dataclass(frozen=True)
class ComposedText:
    """The parts that a user gives; see the module.

    Attributes
    ----------
    name : str
        Of the program.
    text : str
        The user's text.
    discrete : bool
        True if no log-likelihood is above 0: what is, by an error, counts as 0 in the posterior.
    """

    name: str
    text: str
    discrete: bool = False

    def __post_init__(self) -> None:
        missing = [block for block in _NEEDED if block not in self.blocks]
        if missing:
            raise InvalidInput(
                f"program {self.name!r} must have a block {missing[0]!r}: it has "
                f"{', '.join(self.blocks) or 'none'}"
            )
        for tokens in self.blocks.values():
            self._check_names(tokens)
        others = (*self.constants, *self.parameters)
        twice = [own.name for own in others if own.name in self._of_record]
        if twice:
            raise InvalidInput(f"{twice[0]!r} must be declared once: it is in record and elsewhere")
        stans = [each.name for each in self._functions if each.name in RELIED_ON]
        if stans:
            raise InvalidInput(
                f"functions of program {self.name!r} must not have names of Stan's own: "
                f"{stans[0]!r} has; take another"
            )
        if not self.record:
            raise InvalidInput(f"program {self.name!r} must declare the outcome in block 'record'")

    def _check_names(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.text in _NOWHERE:
                raise InvalidInput(
                    f"program {self.name!r} must not hold {token.text!r}, line {token.line}: it "
                    f"{_NOWHERE[token.text]}"
                )
            if token.text.startswith(OURS) or token.text.endswith("__"):
                raise InvalidInput(
                    f"names of program {self.name!r} must not begin with {OURS!r} nor end with "
                    f"'__', line {token.line}: such names are of the program around"
                )

    def check_scope(self, outcome: str) -> None:
        """Raise InvalidInput where a block names the outcome, or a record's entry, out of scope.

        The compiler would refuse it, too: the name is that of an argument of log_lik alone.
        """
        seen = {"replicate": {outcome}, "log_lik": set[str]()}
        for block in ("data", "record", *_BLOCKS[3:]):
            if block == "record" or block not in self.blocks:
                continue
            hidden = seen.get(block, self._of_record)
            local = {own.name for own in declarations(self.blocks[block], only=False, where=block)}
            for token in self.blocks[block]:
                if token.text in hidden and token.text not in local:
                    what = "the outcome" if token.text == outcome else "an entry of one record"
                    raise InvalidInput(
                        f"block {block!r} of program {self.name!r} must not name {token.text!r}, "
                        f"line {token.line}: {what} is not in scope there; a strict epsilon covers "
                        "what it does through log_lik alone"
                    )

    @cached_property
    def blocks(self) -> dict[str, tuple[Token, ...]]:
        """Tokens by block."""
        return blocks_of(tokens_of(self.text, self.name), self.name, _BLOCKS)

    def _block(self, name: str) -> tuple[Token, ...]:
        return self.blocks.get(name, ())

    @cached_property
    def constants(self) -> tuple[Declared, ...]:
        """The data block's."""
        return declarations(self._block("data"), only=True, where="data")

    @cached_property
    def record(self) -> tuple[Declared, ...]:
        """Entries of one record."""
        return declarations(self._block("record"), only=True, where="record")

    @cached_property
    def _of_record(self) -> set[str]:
        return {own.name for own in self.record}

    @cached_property
    def parameters(self) -> tuple[Declared, ...]:
        """Parameters, and transformed ones."""
        own = declarations(self._block("parameters"), only=True, where="parameters")
        also = self._block("transformed parameters")
        return (*own, *declarations(also, only=False, where="transformed parameters"))

    @property
    def why_not_total(self) -> tuple[str, ...]:
        """Why log_lik may fail for some records and parameters; empty if it cannot."""
        data = {own.name for own in (*self.constants, *self.record)}
        return why_not_total(self._block("log_lik"), data, self._functions)

    @cached_property
    def _functions(self) -> tuple[Function, ...]:
        return functions_of(self._block("functions"))

    def program(self, *, guard: bool = True) -> StanProgram:
        """The program that is sampled; densities of log_lik return -inf in the place of errors,
        unless `guard` is False."""
        term = f"{OURS}log_lik({self._given('log_lik', f'[{OURS}i]')})"
        highest = f"fmin(0, {OURS}f)" if self.discrete else f"{OURS}f"
        return self._whole(
            functions=self._functions_text(guard)
            + load_function("functions/pseudo_log_lik.stan")
            + self._function("real", "log_lik", guard)
            + f"  real {OURS}term(real {OURS}f) {{\n"
            f"    return is_nan({OURS}f) ? negative_infinity() : {highest};\n  }}\n",
            records=self.record,
            data=f"  vector<lower=0, upper=1>[{OURS}n] {OURS}weights;\n{_CAP}",
            model=f"model {{\n  {{\n{written(self._block('prior'))}\n  }}\n  {{\n"
            f"    vector[{OURS}n] {OURS}f = rep_vector(0, {OURS}n);\n"
            f"    for ({OURS}i in 1:{OURS}n) {{\n      if ({OURS}weights[{OURS}i] > 0) {{\n"
            f"        {OURS}f[{OURS}i] = {OURS}term({term});\n      }}\n    }}\n"
            f"    target += pseudo_log_lik({OURS}f, rep_vector(1, {OURS}n), {OURS}weights,\n"
            f"                             {_CLIP});\n  }}\n}}\n",
            generated=f"  vector[{OURS}n] log_lik;\n",
            then=f"  for ({OURS}i in 1:{OURS}n) {{\n"
            f"    real {OURS}f = {term};\n"
            f"    log_lik[{OURS}i] = is_nan({OURS}f) ? negative_infinity() : {OURS}f;\n  }}\n",
        )

    def replicates(self, outcome: str) -> StanProgram:
        """The program that draws outcomes anew: it has no data of the outcome."""
        records = tuple(own for own in self.record if own.name != outcome)
        draw = f"{OURS}replicate_rng({self._given('replicate', f'[{OURS}i]')})"
        return self._whole(
            functions=self._functions_text(False) + self._function("real", "replicate", False),
            records=records,
            data="",
            model="",
            generated=f"  vector[{OURS}n] {REPLICATE};\n",
            then=f"  for ({OURS}i in 1:{OURS}n) {{\n    {REPLICATE}[{OURS}i] = {draw};\n  }}\n",
        )

    def _whole(
        self,
        *,
        functions: str,
        records: Sequence[Declared],
        data: str,
        model: str,
        generated: str,
        then: str,
    ) -> StanProgram:
        constants = "".join(f"  {own.text()}\n" for own in self.constants)
        entries = "".join(
            f"  {own.text(first=f'{OURS}n', name=OURS + own.name)}\n" for own in records
        )
        transformed = written(self._block("transformed parameters"))
        also = written(self._block("generated quantities"))
        text = (
            f"functions {{\n{functions}}}\n"
            f"data {{\n  int<lower=1> {OURS}n;\n{constants}{entries}{data}}}\n"
            f"parameters {{\n{written(self._block('parameters'))}\n}}\n"
            + (f"transformed parameters {{\n{transformed}\n}}\n" if transformed else "")
            + model
            + f"generated quantities {{\n{generated}{also}\n"
            f"{then}}}\n"
        )
        return StanProgram(name=self.name, text=text)

    def _functions_text(self, guard: bool) -> str:
        """The user's functions; with `guard`, those that log_lik reaches call densities that do not
        fail, which come before them."""
        tokens, own = self._block("functions"), {each.name for each in self._functions}
        if not guard:
            return written(tokens) + "\n"
        called = reached(self._block("log_lik"), self._functions)
        needs = list(self._block("log_lik"))
        made = list(tokens)
        for each in self._functions:
            if each.name in called:
                needs += each.body
                place = each.place
                made[place : place + len(each.body)] = guarded(each.body, own)
        return guards(needs, own) + written(made) + "\n"

    def _function(self, type_: str, block: str, guard: bool) -> str:
        body = self._block(block)
        if guard:
            body = guarded(body, {each.name for each in self._functions})
        name = f"{OURS}{block}" + ("_rng" if block == "replicate" else "")
        given = ", ".join(
            ("" if own.is_int or not data else "data ") + f"{own.argument} {own.name}"
            for own, data in self._read(block)
        )
        return f"  {type_} {name}({given}) {{\n{written(body)}\n  }}\n"

    def _read(self, block: str) -> list[tuple[Declared, bool]]:
        """What a body reads, and whether it is data."""
        names = names_in(self._block(block))
        data = [(own, True) for own in (*self.record, *self.constants)]
        every = [*data, *((own, False) for own in self.parameters)]
        return [(own, is_data) for own, is_data in every if own.name in names]

    def _given(self, block: str, index: str) -> str:
        """What the function of a block is called with."""
        return ", ".join(
            f"{OURS}{own.name}{index}" if own.name in self._of_record else own.name
            for own, _ in self._read(block)
        )
