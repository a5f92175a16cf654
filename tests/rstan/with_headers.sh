#!/bin/sh
# A compiler whose programs begin with headers read once: with_headers.sh COMPILER ARGUMENTS...
# The first program's own #include lines make them, with the very flags it is compiled with.
compiler=$1
shift
folder=$PYHYBRID_HEADERS
source=
for argument in "$@"; do
  case $argument in *.cpp) source=$argument ;; esac
done
if [ -z "$folder" ] || ! grep -q rstan "${source:-/dev/null}"; then
  exec $compiler "$@"
fi
headers=$folder/headers.hpp
if [ ! -e "$headers" ]; then
  grep '^#include' "$source" >"$headers"
  flags=
  for argument in "$@"; do
    case $argument in -c | -o | *.cpp | *.o) ;; *) flags="$flags '$argument'" ;; esac
  done
  eval "$compiler $flags -x c++-header '$headers' -o '$headers.gch'" || rm -f "$headers.gch"
fi
exec $compiler -include "$headers" "$@"
