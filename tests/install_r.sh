#!/usr/bin/env bash
# Install R, rstan and rpy2 for the tests, where that is possible; say so where it is not.
# Usage: install_r.sh PYTHON
set -u
python=$1
packages="r-base-core r-cran-rstan r-cran-matrixstats r-cran-testthat r-cran-jsonlite r-cran-bit64 r-cran-knitr r-cran-rmarkdown"
# What the R package reads and draws with: a test for each.
packages="$packages r-cran-posterior r-cran-loo r-cran-ggplot2 r-cran-haven r-cran-data.table r-cran-tibble r-cran-generics r-cran-brms"

missing=""
for package in $packages; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ] && command -v apt-get >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ]; then
    echo "installing for the R tests:$missing"
    log=$(mktemp)
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1 || {
      echo "apt-get failed; the R tests will skip:"; tail -n 3 "$log"; }
    rm -f "$log"
  else
    echo "the R tests need:$missing (apt-get install as root); they will skip"
  fi
fi
if ! command -v R >/dev/null 2>&1; then
  echo "R was not found: the R tests will skip"
  exit 0
fi
"$python" -c "import rpy2.rinterface_lib" >/dev/null 2>&1 && exit 0
# rpy2-rinterface 3.6.6 and newer call R_getVar, which came with R 4.5.
if Rscript --vanilla -e 'quit(status = as.integer(getRversion() < "4.5"))' >/dev/null 2>&1; then
  pins="rpy2>=3.6"
else
  pins="rpy2>=3.6 rpy2-rinterface==3.6.5"
fi
"$python" -m pip install --quiet $pins || echo "rpy2 could not be installed: the R tests will skip"
exit 0
