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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.programs import load_function
from pyhybrid.models.stan_program.stan_text import (
    WHOLE_PROGRAM,
    Declared,
    Function,
    Token,
    arguments,
    blocks_of,
    declarations,
    functions_of,
    names_in,
    segments,
    statements,
    tokens_of,
    without_index,
    written,
)
from pyhybrid.models.stan_program.text_rules import (
    PROBES,
    RELIED_ON,
    guarded,
    guards,
    probed,
    reached,
    why_not_total,
)

OURS = "pyhybrid_"
"""Beginning of pyhybrid's names, and of no name of the user's."""
REPLICATE = "pyhybrid_replicate"
_OF_WHOLE = frozenset({"weights", "cap", "use_cap", "n", "N"})  # data of ours in a whole program
_BLOCKS = (
    "functions", "data", "record", "parameters", "transformed parameters", "prior", "log_lik",
    "replicate", "generated quantities",
)  # fmt: skip
_NEEDED = ("record", "parameters", "prior", "log_lik", "replicate")
_BRANCHES = ("if", "for")
_NAME_OF = {"log_lik": "pyhybrid_log_lik", "replicate": "pyhybrid_replicate_rng"}
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
_SAMPLED_DATA = """\
  vector<lower=0, upper=1>[pyhybrid_n] pyhybrid_weights;
  int<lower=0, upper=1> pyhybrid_use_cap;
  real<lower=0> pyhybrid_cap_below;
  real<lower=0> pyhybrid_cap_above;
  vector[pyhybrid_n] pyhybrid_reference;       // log_lik at the center, or 0
  int<lower=0> pyhybrid_n_units;
  array[pyhybrid_n] int<lower=0> pyhybrid_unit;
"""
_TERM = """\
  real pyhybrid_term(real pyhybrid_f) {{
    return is_nan(pyhybrid_f) ? negative_infinity() : {highest};
  }}
"""
_MODEL = """\
model {{
  {{
{prior}
  }}
  {{
    vector[pyhybrid_n] pyhybrid_f = rep_vector(0, pyhybrid_n);
    for (pyhybrid_i in 1:pyhybrid_n) {{
      if (pyhybrid_weights[pyhybrid_i] > 0) {{
        pyhybrid_f[pyhybrid_i] = pyhybrid_term({term});
      }}
    }}
    target += pseudo_log_lik(pyhybrid_f, rep_vector(1, pyhybrid_n), pyhybrid_weights,
                             pyhybrid_reference, pyhybrid_unit, pyhybrid_n_units, 0, 0, 0,
                             pyhybrid_use_cap, pyhybrid_cap_below, pyhybrid_cap_above);
  }}
}}
"""
_LOG_LIK = """\
  for (pyhybrid_i in 1:pyhybrid_n) {{
    real pyhybrid_f = {term};
    log_lik[pyhybrid_i] = is_nan(pyhybrid_f) ? negative_infinity() : pyhybrid_f;
  }}
"""
_REPLICATES = """\
  for (pyhybrid_i in 1:pyhybrid_n) {{
    pyhybrid_replicate[pyhybrid_i] = {draw};
  }}
"""


@dataclass(frozen=True)
class ComposedText:
    """The parts that a user gives, in a program's `text`; see the module. `discrete` if no
    log-likelihood is above 0: what is, by an error, counts as 0 in the posterior."""

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
        self._check_names()
        others = (*self.constants, *self.parameters)
        twice = [variable.name for variable in others if variable.name in self._of_record]
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

    def _check_names(self) -> None:
        for token in (token for tokens in self.blocks.values() for token in tokens):
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
        """Raise InvalidInput where a block names the outcome, or a record's entry, out of scope:
        the compiler would refuse it, too."""
        seen = {"replicate": {outcome}, "log_lik": set[str]()}
        for block in ("data", "record", *_BLOCKS[3:]):
            if block == "record" or block not in self.blocks:
                continue
            hidden = seen.get(block, self._of_record)
            local = {
                variable.name
                for variable in declarations(self.blocks[block], only=False, where=block)
            }
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
        return {variable.name for variable in self.record}

    @cached_property
    def parameters(self) -> tuple[Declared, ...]:
        """Parameters, and transformed ones."""
        plain = declarations(self._block("parameters"), only=True, where="parameters")
        also = self._block("transformed parameters")
        return (*plain, *declarations(also, only=False, where="transformed parameters"))

    @property
    def why_not_total(self) -> tuple[str, ...]:
        """Why log_lik may fail for some records and parameters, as far as the text alone says."""
        return why_not_total(self._block("log_lik"), self._functions)

    @cached_property
    def _functions(self) -> tuple[Function, ...]:
        return functions_of(self._block("functions"))

    def program(self, *, guard: bool = True, probe: str | None = None) -> StanProgram:
        """The program that is sampled; densities of log_lik return -inf in the place of errors,
        unless `guard` is False. With a `probe`, of `text_rules.PROBES`, one that compiles if
        log_lik keeps its rule."""
        term = self._call("log_lik")
        highest = "fmin(0, pyhybrid_f)" if self.discrete else "pyhybrid_f"
        return self._whole(
            functions=(PROBES[probe][0] if probe else "")
            + self._functions_text(guard, probe)
            + load_function("functions/pseudo_log_lik.stan")
            + self._function("log_lik", guard, probe)
            + _TERM.format(highest=highest),
            records=self.record,
            data=_SAMPLED_DATA,
            model=_MODEL.format(prior=written(self._block("prior")), term=term),
            generated="  vector[pyhybrid_n] log_lik;\n",
            then=_LOG_LIK.format(term=term),
        )

    def replicates(self, outcome: str) -> StanProgram:
        """The program that draws outcomes anew: it has no data of the outcome."""
        return self._whole(
            functions=self._functions_text(False) + self._function("replicate", False),
            records=tuple(entry for entry in self.record if entry.name != outcome),
            generated=f"  vector[pyhybrid_n] {REPLICATE};\n",
            then=_REPLICATES.format(draw=self._call("replicate")),
        )

    def _whole(
        self,
        *,
        functions: str,
        records: Sequence[Declared],
        generated: str,
        then: str,
        data: str = "",
        model: str = "",
    ) -> StanProgram:
        constants = "".join(f"  {constant.text()}\n" for constant in self.constants)
        entries = "".join(
            f"  {entry.text(first='pyhybrid_n', name=OURS + entry.name)}\n" for entry in records
        )
        transformed = written(self._block("transformed parameters"))
        also = written(self._block("generated quantities"))
        text = (
            f"functions {{\n{functions}}}\n"
            f"data {{\n  int<lower=1> pyhybrid_n;\n{constants}{entries}{data}}}\n"
            f"parameters {{\n{written(self._block('parameters'))}\n}}\n"
            + (f"transformed parameters {{\n{transformed}\n}}\n" if transformed else "")
            + model
            + f"generated quantities {{\n{generated}{also}\n{then}}}\n"
        )
        return StanProgram(name=self.name, text=text)

    def _functions_text(self, guard: bool, probe: str | None = None) -> str:
        """The user's functions; with `guard`, those that log_lik reaches call densities that do not
        fail, which come before them."""
        tokens = self._block("functions")
        if not guard:
            return written(tokens) + "\n"
        names = {function.name for function in self._functions}
        called = reached(self._block("log_lik"), self._functions)
        needs, rewritten = list(self._block("log_lik")), list(tokens)
        for function in self._functions:
            if function.name in called:
                needs += function.body
                end = function.place + len(function.body)
                rewritten[function.place : end] = probed(guarded(function.body, names), probe)
        return guards(needs, names) + written(rewritten) + "\n"

    def _function(self, block: str, guard: bool, probe: str | None = None) -> str:
        body = self._block(block)
        if guard:
            body = probed(guarded(body, {f.name for f in self._functions}), probe)
        given = ", ".join(
            ("" if variable.is_int or not is_data else "data ")
            + f"{variable.argument} {variable.name}"
            for variable, is_data in self._read(block)
        )
        return f"  real {_NAME_OF[block]}({given}) {{\n{written(body)}\n  }}\n"

    def _read(self, block: str) -> list[tuple[Declared, bool]]:
        """Variables that a body reads, and True for data."""
        names = names_in(self._block(block))
        data = [(variable, True) for variable in (*self.record, *self.constants)]
        every = [*data, *((variable, False) for variable in self.parameters)]
        return [(variable, is_data) for variable, is_data in every if variable.name in names]

    def _call(self, block: str) -> str:
        """The call of a block's function for record ``pyhybrid_i``."""
        given = ", ".join(
            f"{OURS}{variable.name}[{OURS}i]" if variable.name in self._of_record else variable.name
            for variable, _ in self._read(block)
        )
        return f"{_NAME_OF[block]}({given})"


def composed_template(program: StanProgram) -> str:
    """A composed program made of what can be read in a whole one; the rest is for the user."""
    tokens = tokens_of(program.text, program.name, lenient=True)
    blocks = blocks_of(tokens, program.name, WHOLE_PROGRAM)
    data = declarations(blocks.get("data", ()), only=False, where="data")
    entries = {each.name: _by_record(each) for each in data if each.name not in _OF_WHOLE}
    names = {name for name, entry in entries.items() if entry is not None}
    constants = [each.text() for each in data if each.name in entries.keys() - names]
    prior = [
        f"{written(statement)};"
        for statement in statements(blocks.get("model", ()))
        if not names_in(statement) & (names | _OF_WHOLE) and statement[0].text not in _BRANCHES
    ]
    parts = {
        "functions": written(blocks.get("functions", ())),
        "data": "\n".join(constants),
        "record": "\n".join(entry for entry in entries.values() if entry) or "real y;",
        "parameters": written(blocks.get("parameters", ())),
        "transformed parameters": written(blocks.get("transformed parameters", ())),
        "prior": "\n".join(prior) or "// the prior of the parameters",
        "log_lik": _returned(blocks, names, "log_lik"),
        "replicate": _returned(blocks, names, None),
    }
    return "\n".join(
        f"{name} {{\n  " + text.replace("\n", "\n  ") + "\n}"
        for name, text in parts.items()
        if text or name in _NEEDED
    )


def _by_record(variable: Declared) -> str | None:
    """The declaration of one record's entry; None for what has not one value per record."""
    array, sizes = arguments(variable.array), arguments(variable.sizes)
    bounds = f"<{written(variable.bounds)}>" if variable.bounds else ""
    if array and written(array[0]) in ("n", "N"):
        rest = ", ".join(written(each) for each in array[1:])
        of = f"{variable.of}{bounds}" + (f"[{written(variable.sizes)}]" if variable.sizes else "")
        return f"array[{rest}] {of} {variable.name};" if rest else f"{of} {variable.name};"
    if sizes and not array and written(sizes[0]) in ("n", "N"):
        if variable.of == "matrix":
            return f"row_vector{bounds}[{written(sizes[1])}] {variable.name};"
        return f"real{bounds} {variable.name};"
    return None


def _returned(blocks: Mapping[str, tuple[Token, ...]], names: set[str], name: str | None) -> str:
    """The expression of one record's `name`, or that which is drawn, with its local variables."""
    parts = list(segments(blocks.get("generated quantities", ())))
    for place, statement in enumerate(parts):
        at = next((k for k, token in enumerate(statement) if token.text == "="), None)
        if at is None or len(statement) < 4 or statement[at - 1].text != "]":
            continue
        value, index = statement[at + 1 :], statement[at - 2].text
        drawn = any(token.text.endswith("_rng") for token in value)
        if not ((statement[at - 4].text == name) if name else drawn):
            continue
        local = list[str]()
        for before in reversed(parts[:place]):
            if not before or before[0].text not in ("real", "int", "vector", "row_vector"):
                if not any(token.text == "=" for token in before):
                    break
                continue
            local.insert(0, f"{written(without_index(before, names, index))};")
        return "\n".join([*local, f"return {written(without_index(value, names, index))};"])
    what = "log-likelihood of one record" if name else "outcome of one record, drawn anew"
    return f"return 0;  // the {what}"
