# Fits as the packages of the ecosystem expect them.

#' Methods of fits and releases for stats, posterior and broom
#'
#' `as_draws_array()` gives draws with iterations first, then chains, as \pkg{posterior} and \pkg{loo} read
#' them; coefficients have the names of the design's columns. `coef()` and `vcov()` are posterior means and
#' covariances of the coefficients, `tidy()` a row for each parameter, `glance()` one row for the fit. All
#' are of the posterior of the confidential data: CONFIDENTIAL.
#'
#' @param x,object A result of [fit_rstan()] or [fit_cmdstanr()], or of [synthesize()], whose weighted fit
#'   it is then of.
#' @param conf.level Of the intervals, in (0, 1): quantiles of the draws.
#' @param ... Not used.
#' @return As those functions give for other models.
#' @examples
#' release <- from_release(system.file("extdata", "release", package = "pyhybrid"))
#' nobs(release)
#' @name fit-methods
NULL

# The fit of a release, or the fit itself.
fit_in <- function(x) {
  if (!inherits(x, "pyhybrid_release")) {
    return(x)
  }
  fit <- x$confidential$weighted
  if (is.null(fit)) {
    invalid_input("the release must be one that synthesize() made: of one that was read from a folder ",
                  "the draws are not there")
  }
  fit
}

# Draws of all variables but log_lik as (iterations, chains, flat names).
named_draws <- function(fit) {
  draws <- fit$draws[setdiff(names(fit$draws), "log_lik")]
  parts <- lapply(names(draws), function(name) {
    size <- dim(draws[[name]])
    values <- aperm(array(draws[[name]], c(size[1:2], prod(size[-(1:2)]))), c(2, 1, 3))
    dimnames(values) <- list(NULL, NULL, flat_names(name, size[-(1:2)], fit$coefficients))
    values
  })
  size <- dim(parts[[1]])[1:2]
  names <- unlist(lapply(parts, function(part) dimnames(part)[[3]]))
  array(unlist(parts), c(size, length(names)), list(NULL, NULL, names))
}

flat_names <- function(name, size, coefficients) {
  if (length(size) == 0) {
    return(name)
  }
  if (length(size) == 1 && length(coefficients) == size && name %in% c("beta", "sigma_beta")) {
    return(paste0(name, "[", coefficients, "]"))
  }
  index <- do.call(expand.grid, lapply(size, seq_len))
  paste0(name, "[", do.call(paste, c(index, sep = ",")), "]")
}

#' @rdname fit-methods
#' @exportS3Method posterior::as_draws_array
as_draws_array.pyhybrid_fit <- function(x, ...) posterior::as_draws_array(named_draws(x))

#' @rdname fit-methods
#' @exportS3Method posterior::as_draws_array
as_draws_array.pyhybrid_release <- function(x, ...) as_draws_array.pyhybrid_fit(fit_in(x))

#' @rdname fit-methods
#' @exportS3Method posterior::as_draws
as_draws.pyhybrid_fit <- function(x, ...) as_draws_array.pyhybrid_fit(x)

#' @rdname fit-methods
#' @exportS3Method posterior::as_draws
as_draws.pyhybrid_release <- function(x, ...) as_draws_array.pyhybrid_fit(fit_in(x))

coefficient_draws <- function(x) {
  fit <- fit_in(x)
  beta <- stacked_draws(fit, "beta")
  if (is.null(beta)) invalid_input("the fit must have coefficients, a variable 'beta': it has none")
  colnames(beta) <- fit$coefficients
  beta
}

#' @rdname fit-methods
#' @importFrom stats coef
#' @export
coef.pyhybrid_fit <- function(object, ...) colMeans(coefficient_draws(object))

#' @rdname fit-methods
#' @export
coef.pyhybrid_release <- coef.pyhybrid_fit

#' @rdname fit-methods
#' @importFrom stats vcov
#' @export
vcov.pyhybrid_fit <- function(object, ...) stats::cov(coefficient_draws(object))

#' @rdname fit-methods
#' @export
vcov.pyhybrid_release <- vcov.pyhybrid_fit

#' @rdname fit-methods
#' @export
nobs.pyhybrid_fit <- function(object, ...) object$n

#' @rdname fit-methods
#' @exportS3Method generics::tidy
tidy.pyhybrid_fit <- function(x, conf.level = 0.95, ...) {
  level <- check_finite(conf.level, "conf.level")
  if (level <= 0 || level >= 1) invalid_input("conf.level must lie in (0, 1): found ", short(level))
  fit <- fit_in(x)
  draws <- named_draws(fit)
  kept <- sub("\\[.*$", "", dimnames(draws)[[3]]) %in% c("beta", "phi", "sigma", "lambda")
  values <- matrix(draws[, , kept], prod(dim(draws)[1:2]))
  term <- sub("^beta\\[(.*)\\]$", "\\1", dimnames(draws)[[3]][kept])
  ends <- apply(values, 2, stats::quantile, c(1 - level, 1 + level) / 2, names = FALSE)
  data.frame(
    term = term, estimate = colMeans(values), std.error = apply(values, 2, stats::sd),
    conf.low = ends[1, ], conf.high = ends[2, ]
  )
}

#' @rdname fit-methods
#' @exportS3Method generics::tidy
tidy.pyhybrid_release <- tidy.pyhybrid_fit

#' @rdname fit-methods
#' @exportS3Method generics::glance
glance.pyhybrid_fit <- function(x, ...) {
  fit <- fit_in(x)
  size <- dim(fit$draws[[1]])
  data.frame(
    nobs = fit$n, chains = size[1], draws = prod(size[1:2]), rhat = fit$diagnostics$rhat,
    ess_bulk = fit$diagnostics$ess_bulk, ess_tail = fit$diagnostics$ess_tail,
    divergences = fit$diagnostics$divergences, engine = fit$engine
  )
}

#' @rdname fit-methods
#' @exportS3Method generics::glance
glance.pyhybrid_release <- function(x, ...) {
  charge <- x$charge
  cbind(
    data.frame(epsilon = charge$epsilon, delta = charge$delta, kind = charge$kind,
               relation = charge$relation, m = charge$n_synthetic),
    glance.pyhybrid_fit(x)
  )
}
