# A release: synthetic tables, their charge, and what stays with the owner.

new_release <- function(synthetic, charge, settings, outcome, predictors, seeded, identifier,
                        confidential) {
  structure(
    list(
      synthetic = synthetic, charge = charge, settings = settings, outcome = outcome,
      predictors = predictors, seeded = seeded, identifier = identifier,
      # An environment: what shows an object's parts does not show what is in it.
      confidential = list2env(confidential, parent = emptyenv())
    ),
    class = "pyhybrid_release"
  )
}

#' What a release can do
#'
#' `print()` and `summary()` show nothing confidential. `as.list()` gives the synthetic tables, to be
#' mapped over by [lapply()]. `coef()`, `vcov()`, `tidy()` and `as_draws_array()` are of the posterior
#' that the draws came from: CONFIDENTIAL, as only the draws that the sets were simulated from are
#' released; analyses to be published are made of the synthetic sets, see [pool()].
#'
#' @param x,object A result of [synthesize()] or [from_release()].
#' @param ... Not used.
#' @return `summary()` a data frame with a row for each synthetic set: mean, standard deviation,
#'   quantiles of the outcome; `nobs()` the number of records; `plot()` a figure of \pkg{ggplot2}, the
#'   distribution functions of the synthetic sets, which is fit to be published.
#' @examples
#' release <- from_release(system.file("extdata", "release", package = "pyhybrid"))
#' release
#' summary(release)
#' pool(release, function(set) glm(visits ~ sex, poisson, set))
#' @name release-methods
NULL

#' @rdname release-methods
#' @export
print.pyhybrid_release <- function(x, ...) {
  table <- x$synthetic[[1]]
  as_they_are <- setdiff(names(table), x$outcome)
  cat("Release of ", length(x$synthetic), " synthetic set(s) of ", nrow(table), " records\n",
      "  synthesized:  ", paste(x$outcome, collapse = ", "),
      if (!is.null(x$settings$formula)) paste0("   (", x$settings$formula, ", ", x$settings$model, ")"),
      "\n  as they are:  ", if (length(as_they_are) > 0) {
        paste0(paste(as_they_are, collapse = ", "), "; not covered by the charge")
      } else {
        "no columns"
      }, "\n", sep = "")
  print(x$charge)
  invisible(x)
}

#' @rdname release-methods
#' @export
summary.pyhybrid_release <- function(object, ...) {
  rows <- lapply(object$synthetic, function(table) {
    values <- as.double(table[[object$outcome[1]]])
    at <- stats::quantile(values, c(0.15, 0.5, 0.9), names = FALSE)
    data.frame(n = length(values), mean = mean(values), sd = stats::sd(values), q15 = at[1],
               median = at[2], q90 = at[3])
  })
  cbind(set = seq_along(rows), outcome = object$outcome[1], do.call(rbind, rows))
}

# Without it str() would take the synthetic sets, which as.list() gives, for the parts of the object.
#' @importFrom utils str
#' @export
str.pyhybrid_release <- function(object, ...) {
  cat("Release by pyhybrid: ", length(object$synthetic), " synthetic set(s), ", format(object$charge),
      "\n", sep = "")
  str(object$synthetic, ...)
}

#' @rdname release-methods
#' @export
as.list.pyhybrid_release <- function(x, ...) x$synthetic

#' @rdname release-methods
#' @export
plot.pyhybrid_release <- function(x, ...) plot_ecdf(x)

#' @rdname release-methods
#' @importFrom stats nobs
#' @export
nobs.pyhybrid_release <- function(object, ...) nrow(object$synthetic[[1]])

# Synthetic tables of a release, of a list of data frames, or of one.
sets_of <- function(x) {
  if (inherits(x, "pyhybrid_release")) {
    return(x$synthetic)
  }
  sets <- if (is.data.frame(x)) list(x) else x
  if (!is.list(sets) || length(sets) == 0 || !all(vapply(sets, is.data.frame, TRUE))) {
    invalid_input("synthetic must be a release, a data frame or a list of data frames: found ",
                  class(x)[1])
  }
  lapply(sets, as.data.frame)
}
