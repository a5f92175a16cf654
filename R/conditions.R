# Conditions that this package signals on purpose. A message says what must hold, what was found,
# where, and what to do; its words are those of the Python package, records counted from 1.

#' Conditions signaled by pyhybrid
#'
#' @description
#' * `pyhybrid_invalid_input`: an argument does not meet what the function states.
#' * `pyhybrid_engine_unavailable`: the engine asked for cannot run; the message names the remedy.
#' * `pyhybrid_sampling_error`: an engine started and failed.
#'
#' All three inherit from `error`, so [tryCatch()] may name either. Messages are those of the
#' Python package; the one difference is that records and draws are counted from 1. The call that a
#' condition names is the function of this package that was called, without its arguments, which may
#' hold data.
#'
#' @name pyhybrid-conditions
#' @examples
#' tryCatch(lipschitz_bounds(c(-1, -2)), pyhybrid_invalid_input = conditionMessage)
NULL

signal <- function(class, ...) {
  stop(structure(
    class = c(class, "error", "condition"),
    list(message = paste0(...), call = function_called())
  ))
}

# The first function of this package on the stack, as a call without arguments.
function_called <- function() {
  package <- parent.env(environment())
  for (frame in seq_len(sys.nframe())) {
    if (!identical(environment(sys.function(frame)), package)) next
    name <- sys.call(frame)[[1]]
    if (is.call(name) && length(name) == 3) name <- name[[3]]
    return(if (is.symbol(name)) as.call(list(name)))
  }
  NULL
}

invalid_input <- function(...) signal("pyhybrid_invalid_input", ...)

engine_unavailable <- function(...) signal("pyhybrid_engine_unavailable", ...)

sampling_error <- function(...) signal("pyhybrid_sampling_error", ...)

# A package of Suggests that a function cannot do without.
require_package <- function(name, what) {
  if (!requireNamespace(name, quietly = TRUE)) {
    engine_unavailable(what, " needs the package ", name, ": install.packages(\"", name, "\")")
  }
}
