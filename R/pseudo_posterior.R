# The papers' workflow in R alone: fit, weights, refit, bound, charge, release.

#' Release synthetic data by the risk-weighted pseudo posterior mechanism
#'
#' An unweighted fit gives the risk of each record and its weight, a fit with these weights the
#' synthetic values and the charge: steps 1 to 7 of the supplement of Hu, Savitsky and Williams.
#'
#' The charge is asymptotic local, as published: the weights are taken as fixed. It is counted three
#' ways: as in the papers, 2 times the Lipschitz bound; by the largest range; and by the Gaussian
#' limit at `delta`. When a record leaves, the weights of others change, too, which none of them
#' counts: the Python package makes full refits without single records and charges what they lose,
#' which can be several times as much. State Python's number for a release.
#'
#' Chains that did not converge understate or overstate all three: they are refused where R-hat is
#' above 1.01, an effective sample size below 100 per chain, or more than 0.1 % of transitions
#' diverged.
#'
#' @param formula,data As in [stan_data()].
#' @param program `"negative_binomial"`, `"poisson"`, `"bernoulli"`, `"beta"` or `"beta_regression"`;
#'   all but the third also as published, e.g. `"published/negative_binomial"`.
#' @param scale,shift,transform,risk Of the weights, as in [lipschitz_weights()]; `scale = 0` and
#'   `shift = 1` give all records weight 1.
#' @param reweighting Raise weights where a record leaves slack ([reweight()]) and fit once more.
#' @param n_synthetic Number of synthetic data sets, each from a draw of its own.
#' @param relation `"remove"` or `"replace"`.
#' @param delta Public delta of the Gaussian accounting, below 1 / n.
#' @param seed Whole number for the fits and the replicates; drawn at random if `NULL`.
#' @param on_not_converged `"raise"`, or `"warn"` to release anyway.
#' @param fit Function such as [fit_rstan()] or [fit_cmdstanr()].
#' @param ... Handed to `fit`, such as `chains` or `cache_folder`.
#' @return A list of `synthetic` (data frames), `epsilon` (list of `lipschitz`, `range`,
#'   `gaussian`), `delta`, `settings`; and, confidential, `alpha`, `bounds` (as
#'   [lipschitz_bounds()]), `unweighted` and `weighted` (as [fit_rstan()]).
#' @examples
#' \dontrun{
#' visits <- data.frame(visits = rnbinom(200, size = 2, mu = 5))
#' release <- pseudo_posterior(visits ~ 1, visits, n_synthetic = 3, seed = 1)
#' release$epsilon
#' }
#' @export
pseudo_posterior <- function(formula, data, program = "negative_binomial", scale = 1, shift = 0,
                             transform = "linear", risk = "size", reweighting = FALSE,
                             n_synthetic = 1, relation = "remove", delta = 1e-6, seed = NULL,
                             on_not_converged = "raise", fit = fit_rstan, ...) {
  family <- families_in_r[[sub("^published/", "", as.character(program)[1])]]
  if (is.null(family)) {
    invalid_input(
      "program must be one of ", paste(names(families_in_r), collapse = ", "), ": found ",
      show_value(program)
    )
  }
  check_count(n_synthetic, "n_synthetic")
  check_choice(relation, "relation", c("remove", "replace"))
  check_flag(reweighting, "reweighting")
  check_choice(on_not_converged, "on_not_converged", c("raise", "warn"))
  if (check_fraction(delta, "delta") >= 1 / nrow(data)) {
    invalid_input("delta must be below 1 / n = ", short(1 / nrow(data)), ": found ", short(delta))
  }
  seed <- if (is.null(seed)) sample.int(.Machine$integer.max, 1) else check_count(seed, "seed", 0)
  fitted <- function(alpha, step) {
    given <- stan_data(formula, data, weights = alpha, program = program)
    own <- with_remedy(program, fit(
      program, given,
      seed = (seed + step) %% .Machine$integer.max, ...
    ))
    report_not_converged(own, program, on_not_converged)
    y <- if (is.null(given$y)) given$outcome else given$y
    list(fit = own, log_lik = family$log_lik(as.vector(y), parameters_of(own, program)))
  }
  one <- fitted(NULL, 0)
  alpha <- lipschitz_weights(one$log_lik, scale, shift, transform, risk = risk)
  weighted <- fitted(alpha, 1)
  if (reweighting) {
    alpha <- reweight(alpha, lipschitz_bounds(weighted$log_lik, alpha)$by_record)
    weighted <- fitted(alpha, 2)
  }
  bounds <- lipschitz_bounds(weighted$log_lik, alpha)
  list(
    synthetic = replicates_in_r(formula, data, family, weighted$fit, program, n_synthetic, seed),
    epsilon = as.list(c(
      lipschitz = epsilon_of_bound(bounds$overall, n_synthetic, relation, family$above_one),
      epsilon_of_terms(weighted, alpha, n_synthetic, relation, delta)
    )),
    delta = delta, alpha = alpha, bounds = bounds, unweighted = one$fit,
    weighted = weighted$fit,
    settings = list(
      program = program, scale = scale, shift = shift, transform = transform, risk = risk,
      reweighting = reweighting, n_synthetic = n_synthetic, relation = relation, seed = seed
    )
  )
}

# What to say of chains of a published program that failed.
remedy_if_published <- function(program) {
  name <- sub("^published/", "", program)
  if (name == program) return("")
  paste0("; program = \"", name, "\" samples the same posterior, faster")
}

with_remedy <- function(program, made) {
  tryCatch(made, pyhybrid_sampling_error = function(problem) {
    sampling_error(conditionMessage(problem), remedy_if_published(program))
  })
}

# The Python package's rule of convergence.
report_not_converged <- function(fit, program, on_not_converged) {
  found <- fit$diagnostics
  size <- dim(fit$draws[[1]])
  if (isTRUE(found$rhat <= 1.01 && min(found$ess_bulk, found$ess_tail) >= 100 * size[1] &&
    found$divergences <= 0.001 * prod(size[1:2]))) {
    return(invisible())
  }
  message <- paste0(
    "the fit did not converge: R-hat ", short(found$rhat), " (1.01 at most), effective draws ",
    short(floor(min(found$ess_bulk, found$ess_tail))), " (", 100 * size[1], " at least), divergences ",
    found$divergences, " (", floor(0.001 * prod(size[1:2])), " at most). Give more iter_warmup and ",
    "iter_sampling, or on_not_converged = \"warn\" to release anyway", remedy_if_published(program)
  )
  if (on_not_converged == "raise") sampling_error(message)
  warning(message, call. = FALSE)
}

epsilon_of_terms <- function(weighted, alpha, n_synthetic, relation, delta) {
  chains <- dim(weighted$fit$draws[[1]])[1]
  mu <- gaussian_mu(weighted$log_lik, alpha, chains = chains)$upper
  loss_range <- loss_ranges(weighted$log_lik, alpha)$overall
  c(
    range = epsilon_of_range(loss_range, n_synthetic, relation),
    gaussian = epsilon_of_mu(mu_of_release(mu, n_synthetic, relation), delta)
  )
}

# Draws in rows, records in columns: the mean, or success probability, and the size.
parameters_of <- function(fit, program) {
  flat <- function(name) {
    draws <- fit$draws[[name]]
    if (is.null(draws)) return(NULL)
    size <- dim(draws)
    matrix(aperm(draws, c(2, 1, seq_along(size)[-(1:2)])), prod(size[1:2])) # chain after chain
  }
  mean <- flat("mu")
  if (program %in% c("published/negative_binomial", "published/poisson")) mean <- exp(mean)
  if (is.null(mean)) mean <- flat("mu_record")
  if (is.null(mean)) mean <- flat("phi")
  size <- switch(sub("^published/", "", program),
    negative_binomial = flat("phi"), beta = , beta_regression = flat("lambda")
  )
  list(mean = mean, size = size)
}

replicates_in_r <- function(formula, data, family, fit, program, n_synthetic, seed) {
  at <- parameters_of(fit, program)
  if (nrow(at$mean) < n_synthetic) {
    invalid_input("n_synthetic must be at most the number of draws, ", nrow(at$mean))
  }
  set.seed(seed)
  outcome <- all.vars(stats::as.formula(formula))[1]
  lapply(sample.int(nrow(at$mean), n_synthetic), function(s) {
    mean <- rep_len(at$mean[s, ], nrow(data))
    data[[outcome]] <- family$draw(length(mean), mean, at$size[s])
    data
  })
}

# One row of densities for each draw.
by_draw <- function(y, at, density) {
  n <- length(y)
  t(vapply(seq_len(nrow(at$mean)), function(s) {
    density(y, rep_len(at$mean[s, ], n), at$size[s])
  }, numeric(n)))
}

family_in_r <- function(density, draw, above_one = FALSE) {
  list(log_lik = function(y, at) by_draw(y, at, density), draw = draw, above_one = above_one)
}

beta_family <- family_in_r(
  function(y, mean, size) stats::dbeta(y, size * mean, size * (1 - mean), log = TRUE),
  function(n, mean, size) stats::rbeta(n, size * mean, size * (1 - mean)),
  above_one = TRUE
)

families_in_r <- list(
  negative_binomial = family_in_r(
    function(y, mean, size) stats::dnbinom(y, size = size, mu = mean, log = TRUE),
    function(n, mean, size) stats::rnbinom(n, size = size, mu = mean)
  ),
  poisson = family_in_r(
    function(y, mean, size) stats::dpois(y, mean, log = TRUE),
    function(n, mean, size) stats::rpois(n, mean)
  ),
  bernoulli = family_in_r(
    function(y, mean, size) stats::dbinom(y, 1, mean, log = TRUE),
    function(n, mean, size) stats::rbinom(n, 1, mean)
  ),
  beta = beta_family,
  beta_regression = beta_family
)
