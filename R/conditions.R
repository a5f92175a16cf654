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
#' Python package; the one difference is that records and draws are counted from 1.
#'
#' @name pyhybrid-conditions
#' @examples
#' tryCatch(lipschitz_bounds(c(-1, -2)), pyhybrid_invalid_input = conditionMessage)
NULL

signal <- function(class, ...) {
  stop(structure(
    class = c(class, "error", "condition"),
    list(message = paste0(...), call = NULL)
  ))
}

invalid_input <- function(...) signal("pyhybrid_invalid_input", ...)

engine_unavailable <- function(...) signal("pyhybrid_engine_unavailable", ...)

sampling_error <- function(...) signal("pyhybrid_sampling_error", ...)
