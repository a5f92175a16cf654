# A log-likelihood matrix from the objects that R users hold.

#' Log-likelihood matrix of an object
#'
#' Draws in rows, stacked chain after chain, and records in columns: what [lipschitz_bounds()],
#' [lipschitz_weights()], [loss_ranges()], [gaussian_mu()] and the other functions of a log-likelihood
#' read. They call `as_loglik()` themselves, so that every object that it takes can be given to them.
#'
#' @details
#' * A matrix: as it is. A data frame of numbers: one column for each record.
#' * An array of iterations, chains and records, as in \pkg{loo}.
#' * Draws of \pkg{posterior} in any format: their variable `log_lik`. `.chain`, `.iteration` and
#'   `.draw` are no records.
#' * A `stanfit`, a `CmdStanMCMC` or what [fit_rstan()] returns: its variable `log_lik`, if the
#'   program has one.
#' * A `brmsfit`: `brms::log_lik()` divided by the model's weights, which brms multiplies it by. A
#'   record of weight 0 is refused: its log-likelihood is lost.
#'
#' The log-likelihood must be UNWEIGHTED. A program that multiplies it by the weights, as the
#' published ones do, cannot be told from one that does not: give such a matrix with `alpha = NULL`.
#'
#' @param x The object.
#' @param variable Name of the log-likelihood among the draws.
#' @param ... For methods.
#' @return A matrix, S draws by n records, with the attribute `chains`, the number of chains that its
#'   rows come from, where that is known. Names of the columns are kept. Confidential.
#' @examples
#' three_chains <- array(-stats::rexp(5 * 3 * 4), c(5, 3, 4))
#' dim(as_loglik(three_chains))
#' lipschitz_bounds(three_chains)$overall
#' @export
as_loglik <- function(x, ...) UseMethod("as_loglik")

#' @rdname as_loglik
#' @export
as_loglik.default <- function(x, ...) {
  if (!(is.numeric(x) || is.logical(x)) || is.factor(x)) {
    invalid_input("log_lik must be numeric: found ", class(x)[1])
  }
  if (is.object(x)) invalid_input("log_lik must be a plain matrix: found ", class(x)[1])
  if (length(dim(x)) == 3 && length(x) > 0) {
    return(stacked(x))
  }
  if (length(dim(x)) != 2 || length(x) == 0) {
    invalid_input(
      "log_lik must have shape (S draws, n records) with S >= 1 and n >= 1, or (iterations, ",
      "chains, n records): found ", show_shape(x)
    )
  }
  storage.mode(x) <- "double"
  x
}

#' @rdname as_loglik
#' @export
as_loglik.data.frame <- function(x, ...) {
  wrong <- which(!vapply(x, function(column) is.numeric(column) && !is.object(column), TRUE))
  if (length(wrong) > 0) {
    invalid_input(
      "log_lik must be numeric: column '", names(x)[wrong[1]], "' is ", class(x[[wrong[1]]])[1]
    )
  }
  as_loglik.default(as.matrix(x))
}

#' @rdname as_loglik
#' @export
as_loglik.draws <- function(x, variable = "log_lik", ...) {
  require_package("posterior", "a draws object")
  names <- posterior::variables(x)
  of_array <- grepl("^\\.\\.\\.[0-9]+$", names) # of a matrix without names
  chosen <- if (all(of_array)) names else names[sub("\\[.*$", "", names) == variable]
  if (length(chosen) == 0) {
    invalid_input(
      "draws must have a variable '", variable, "', one element for each record: found ",
      paste(utils::head(unique(sub("\\[.*$", "", names)), 5), collapse = ", ")
    )
  }
  flat <- unclass(posterior::as_draws_array(posterior::subset_draws(x, variable = chosen)))
  stacked(unname(flat))
}

#' @rdname as_loglik
#' @export
as_loglik.stanfit <- function(x, variable = "log_lik", ...) {
  require_package("rstan", "a stanfit")
  if (!variable %in% x@model_pars) {
    invalid_input(
      "the fit must have a variable '", variable, "', one element for each record: found ",
      paste(utils::head(x@model_pars, 5), collapse = ", ")
    )
  }
  stacked(unname(rstan::extract(x, pars = variable, permuted = FALSE)))
}

#' @rdname as_loglik
#' @export
as_loglik.CmdStanMCMC <- function(x, variable = "log_lik", ...) {
  if (!variable %in% x$metadata()$stan_variables) {
    invalid_input(
      "the fit must have a variable '", variable, "', one element for each record: found ",
      paste(utils::head(x$metadata()$stan_variables, 5), collapse = ", ")
    )
  }
  as_loglik(x$draws(variables = variable, format = "draws_array"), variable = variable)
}

#' @rdname as_loglik
#' @export
as_loglik.brmsfit <- function(x, ...) {
  require_package("brms", "a brmsfit")
  weights <- brms::standata(x)$weights
  log_lik <- unname(brms::log_lik(x))
  if (length(dim(log_lik)) != 2) {
    invalid_input(
      "log_lik must have shape (S draws, n records): the model has several outcomes, found ",
      show_shape(log_lik)
    )
  }
  if (!is.null(weights)) {
    lost <- which(!(weights > 0))
    if (length(lost) > 0) {
      invalid_input(
        "a brmsfit must have weights above 0, which its log-likelihood is divided by: record ",
        lost[1], " has 0"
      )
    }
    log_lik <- log_lik / rep(as.vector(weights), each = nrow(log_lik))
  }
  storage.mode(log_lik) <- "double"
  structure(log_lik, chains = brms::nchains(x))
}

#' @rdname as_loglik
#' @export
as_loglik.pyhybrid_fit <- function(x, ...) {
  if (is.null(x$log_lik)) invalid_input("the fit must have a variable 'log_lik': it has none")
  structure(x$log_lik, chains = dim(x$draws[[1]])[1])
}

# An array of iterations, chains and records as a matrix, chain after chain.
stacked <- function(x) {
  size <- dim(x)
  rows <- matrix(as.double(x), size[1] * size[2], size[3])
  colnames(rows) <- dimnames(x)[[3]]
  structure(rows, chains = size[2])
}

# A log-likelihood as the functions compute with it.
check_log_lik <- function(log_lik) {
  matrix <- as_loglik(log_lik)
  attr(matrix, "chains") <- NULL
  rownames(matrix) <- NULL
  matrix
}
