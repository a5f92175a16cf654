"""Answers CmdStan's command line with stored output; see README.md."""

import json
import os
import shutil
import stat
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(arguments):
    if arguments == ["info"]:
        print("stan_version_major = 2")
        return 0
    options = dict(a.split("=", 1) for a in arguments if "=" in a)
    files = [a.split("=", 1)[1] for a in arguments if a.startswith("file=")]
    data, output = Path(files[0]), Path(files[1])
    entry = {
        "arguments": arguments, "data": json.loads(data.read_text()),
        "folder_mode": stat.S_IMODE(data.parent.stat().st_mode), "folder": str(data.parent),
        "pid": os.getpid(),
    }  # fmt: skip
    for key in ("init", "metric_file"):
        if key in options and os.path.exists(options[key]):
            entry[key] = json.loads(Path(options[key]).read_text())
    with open(os.environ["FAKE_CMDSTAN_LOG"], "a") as log:
        log.write(json.dumps(entry) + "\n")
    mode = os.environ.get("FAKE_CMDSTAN_MODE", "")
    if mode == "no start":
        print("Rejecting initial value:")
        print("Initialization between (-2, 2) failed after 100 attempts. ")
        return 1
    if mode == "killed":
        os.kill(os.getpid(), 9)
    if mode == "fail":
        print("Exception: something went wrong", file=sys.stderr)
        return 70
    print("Iteration:  20 / 220 [  9%]  (Warmup)", flush=True)
    time.sleep({"slow": 1.0, "endless": 600.0}.get(mode, 0.0))
    print("Iteration: 220 / 220 [100%]  (Sampling)", flush=True)
    shutil.copy(HERE / f"output_{options['id']}.csv", output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
