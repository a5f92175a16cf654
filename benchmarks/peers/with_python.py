"""One synthetic table by a peer, run by the peer's own Python: needs nothing of ours.

    python with_python.py NAME [DATA.csv EPSILON SEED OUT.csv]

Columns are categories or whole numbers of few values; DATA.csv names them. Prints one line of
JSON: CPU seconds, peak memory in MB, version; without a table the version alone.
"""

import functools
import json
import resource
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd

DELTA = 1e-6


def smartnoise(kind):
    """SmartNoise-synth's MST and AIM: no preprocessing budget, as all columns are categories.

    mbi 1.1.0, which it requires, makes rows by rounding as it is called: within the records of one
    value of a column, every column that depends on it is filled in the same order, so that two such
    columns move together whatever the model says. Rows are drawn one by one instead.
    """

    def made(table, epsilon):
        from mbi import MarkovRandomField
        from snsynth import Synthesizer

        rounded = MarkovRandomField.synthetic_data
        MarkovRandomField.synthetic_data = functools.partialmethod(rounded, method="sample")
        own = Synthesizer.create(kind, epsilon=epsilon, delta=DELTA, verbose=False)
        own.fit(table.astype(str), categorical_columns=list(table.columns), preprocessor_eps=0.0)
        return own.sample(len(table))

    return made


def dpmm(kind):
    """dpmm's MST and AIM: the domain is given, no binning."""

    def made(table, epsilon):
        from dpmm import pipelines

        columns = {name: {"type": "categorical", "categories": sorted(set(values))}
                   for name, values in table.astype(str).items()}  # fmt: skip
        make = {"mst": pipelines.MSTPipeline, "aim": pipelines.AIMPipeline}[kind]
        own = make(epsilon=epsilon, delta=DELTA, disable_processing=False, proc_epsilon=None)
        own.fit(table.astype(str).astype("category"), domain=columns)
        return own.generate(n_records=len(table))

    return made


def sdv(table, epsilon):
    """SDV's Gaussian copula: no privacy guarantee."""
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    own = GaussianCopulaSynthesizer(Metadata.detect_from_dataframes({"table": table}))
    own.fit({"table": table})
    return own.sample(len(table))["table"]


def synthpop(table, epsilon):
    """synthpop's sequential CART as synthpop-py has it, with its defaults: no privacy guarantee."""
    from synthpop import Synthesiser

    own = Synthesiser(random_seed=int(sys.argv[4]))
    own.fit(table)
    made = own.generate(len(table))
    return made.round().astype(int)  # whole numbers come back as floats


PEERS = {
    "smartnoise-mst": ("smartnoise-synth", smartnoise("mst")),
    "smartnoise-aim": ("smartnoise-synth", smartnoise("aim")),
    "dpmm-mst": ("dpmm", dpmm("mst")),
    "dpmm-aim": ("dpmm", dpmm("aim")),
    "sdv-copula": ("sdv", sdv),
    "synthpop-py-cart": ("synthpop-py", synthpop),
}


def main():
    package, make = PEERS[sys.argv[1]]
    if len(sys.argv) == 2:
        print(version(package))
        return
    data, epsilon, seed, out = sys.argv[2:]
    np.random.seed(int(seed))  # noqa: NPY002 - the only seed that these programs take
    table = pd.read_csv(data)
    cpu = time.process_time()
    made = make(table, float(epsilon))
    cpu = time.process_time() - cpu
    made[list(table.columns)].to_csv(out, index=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_seconds": cpu, "megabytes": peak, "version": version(package)}))


if __name__ == "__main__":
    main()
