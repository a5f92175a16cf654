#' pyhybrid: synthetic microdata with a formal privacy guarantee
#'
#' The array functions of the Python package pyhybrid under the same names, written independently
#' and held against it in tests, and fitting of the shared Stan programs with rstan or cmdstanr.
#'
#' Log-likelihoods, bounds and epsilons are in nats. Bounds, weights and log-likelihoods are
#' functions of the confidential data and must not be released.
#'
#' @section The way of the papers:
#' [fit_rstan()] with weights 1, [lipschitz_weights()], [fit_rstan()] with these weights,
#' [lipschitz_bounds()], [reweight()] and a refit where there is slack, [epsilon_of_bound()].
#' @keywords internal
"_PACKAGE"
