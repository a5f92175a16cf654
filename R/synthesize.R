# A release in one call: fits, weights, refits, charge, synthetic tables.

#' Synthetic data by a pseudo posterior mechanism, with its privacy charge
#'
#' Fits the model under the mechanism's record weights, draws m synthetic versions of the outcome from
#' the posterior predictive distribution, and charges what the draws tell about single records.
#'
#' @details
#' **Charge.** The papers' epsilon is \eqn{2\Delta} a draw, with the weights taken as fixed. It can be
#' less than the truth, as the weights of all records change when one leaves. So full refits are made
#' without the 5 records of largest deviation of their weighted term and the 5 of largest size under
#' weights of 1: weights, re-weighting and fit anew, with the same coding and seeds ([refit_loss()]).
#' `accounting = "lipschitz"` charges \eqn{2\Delta} or 1.25 times the largest loss of these refits,
#' whichever is more; `"range"` the largest range of own terms or that loss; `"gaussian"` (epsilon, delta)
#' by the largest deviation, or that loss. All three stand in the charge, beside the papers' number. With
#' `refits = 0` the charge is labelled as published. It is the rule of the Python package. A record that
#' nearly alone informs a coefficient is refused before any outcome is read, as no refit tells what it
#' costs ([sole_informants()]). A [censored()] release is charged its cap.
#'
#' All charges made in R are **local**: they hold for this database, estimated from draws. Strict
#' releases, for every database, need noise that was audited for it, which R has not: they are made by
#' the Python package. From R, with \pkg{reticulate}:
#' `ph <- reticulate::import("pyhybrid")`, then
#' `ph$ClippedScores(ph$Poisson("visits ~ age"), epsilon = 1)$release(survey)$save("out")` and
#' `from_release("out")`. [clip_scores()] has its arithmetic, for given noise.
#'
#' **Convergence.** Chains that did not converge understate or overstate a charge: they are refused
#' where R-hat is above 1.01, an effective sample size below 100 per chain, or more than 0.1 % of
#' transitions diverged.
#'
#' **Random numbers.** Without a `seed` they come from the system's entropy, whatever [set.seed()] said;
#' a seed lets anyone who learns it recompute the release. The session's own random numbers are the same
#' after the call as before it.
#'
#' @param formula As in [stats::glm()]; the outcome is a column.
#' @param data A data frame. Columns that are not synthesized come back as they are, and no charge
#'   covers them.
#' @param family `"poisson"`, `"negative_binomial"`, `"bernoulli"`, `"normal"`, `"beta"` (without
#'   predictors), `"beta_regression"`; or `poisson()`, `binomial()`, `gaussian()`. `"published/"` and
#'   one of these names but bernoulli and normal runs the program as the papers print or describe it.
#' @param mechanism One of [mechanisms], such as `lipschitz_weighted()`.
#' @param m Number of synthetic sets, each from a draw of its own.
#' @param prior `"published"` or `"normal"`, see [stan_data()].
#' @param accounting `"lipschitz"`, `"range"` or `"gaussian"`.
#' @param relation `"remove"` or `"replace"`.
#' @param delta Public delta of the Gaussian accounting, below 1 / n for it.
#' @param engine `"auto"` (cmdstanr where it and CmdStan are found, else rstan), `"rstan"`,
#'   `"cmdstanr"`, or a function such as [fit_rstan()].
#' @param seed Whole number, or `NULL`.
#' @param refits Records left out for the charge, even; 0 charges as published.
#' @param on_not_converged `"raise"`, or `"warn"` to release anyway, which the charge then says.
#' @param progress Say what is being fitted, by [message()].
#' @param ... Options of the outcome, as in [stan_data()] (`lower`, `upper`, `edge`, `transform`, `unit`,
#'   `min_sd`, `prior_scale`, `prior_scale_intercept`), and of the engine (`chains`, `iter_warmup`,
#'   `iter_sampling`, `adapt_delta`, `cache_folder`, ...).
#' @return An object of class `pyhybrid_release`; see [release-methods].
#' @references Savitsky, Williams, Hu (2022), JMLR 23:1-37. Hu, Savitsky, Williams, Maximizing utility
#'   for vector-weighted pseudo posterior mechanisms under differential privacy.
#' @examples
#' \donttest{
#' if (requireNamespace("rstan", quietly = TRUE)) {
#'   survey <- data.frame(visits = stats::rpois(200, 5), sex = rep(c("f", "m"), 100))
#'   release <- synthesize(visits ~ sex, survey, "poisson", m = 3, refits = 2, chains = 2)
#'   release
#'   summary(release)
#' }
#' }
#' @export
synthesize <- function(formula, data, family = "negative_binomial", mechanism = lipschitz_weighted(),
                       m = 1, prior = NULL, accounting = "lipschitz", relation = "remove",
                       delta = 1e-6, engine = "auto", seed = NULL, refits = 10,
                       on_not_converged = "raise", progress = interactive(), ...) {
  family <- family_of(family)
  check_mechanism(mechanism, "mechanism")
  check_count(m, "m")
  check_choice(accounting, "accounting", accountings)
  check_choice(relation, "relation", charge_relations)
  check_choice(on_not_converged, "on_not_converged", c("raise", "warn"))
  delta <- check_delta(delta)
  if (!is.null(seed)) check_count(seed, "seed", at_least = 0)
  check_refits(refits)
  engine <- engine_of(engine)
  options <- split_options(list(...), engine)
  design <- do.call(program_design, c(
    list(formula, data, family$program, prior), options$outcome,
    list(given = c(names(options$outcome), if (!is.null(prior)) "prior"))
  ))
  check_release(design, data, accounting, delta, mechanism, refits)
  how <- list(m = m, accounting = accounting, relation = relation, delta = delta)
  seeded <- !is.null(seed)
  session <- new_session(list(
    design = design, family = family, outcome = as.double(data[[design$outcome]]), data = data,
    relation = relation, engine = engine, options = options$engine,
    seed = if (seeded) seed else new_seed(), on_not_converged = on_not_converged,
    tell = if (check_flag(progress, "progress")) message else function(...) NULL
  ))
  fit <- weighted_fit(mechanism, session)
  clips <- isTRUE(mechanism$clips)
  loss <- if (!clips) local_loss(session, fit, mechanism, refits, delta)
  record <- if (clips) {
    charge_of_cap(session, fit, mechanism, how)
  } else {
    charge_of_fit(session, fit, loss, mechanism, how)
  }
  settings <- settings_of(formula, mechanism, family, design, how, refits)
  new_release(
    synthetic = replicates(session, fit, m, if (seeded) seed),
    charge = public_charge(record, delta), settings = settings, outcome = design$outcome,
    predictors = setdiff(intersect(all.vars(stats::as.formula(formula)), names(data)), design$outcome),
    seeded = seeded, identifier = new_identifier(),
    confidential = list(
      alpha = fit$alpha, bounds = bounds_of_release(session, fit, clips),
      before = fit$before, unweighted = session$held$fit, weighted = fit$fit, loss = loss,
      charge = record, seed = session$seed
    )
  )
}

# Of a clipped fit the bounds are of the clipped terms.
bounds_of_release <- function(session, fit, clips) {
  log_lik <- session$log_lik(fit)
  if (clips) {
    terms <- censor(log_lik, fit$alpha, max(check_caps(fit$cap)))
    bounds <- lipschitz_bounds(terms)
    bounds$alpha <- fit$alpha
    return(bounds)
  }
  lipschitz_bounds(log_lik, fit$alpha)
}

engine_of <- function(engine) {
  if (is.function(engine)) {
    return(engine)
  }
  check_choice(engine, "engine", c("auto", "rstan", "cmdstanr"))
  if (engine == "auto") engine <- if (has_cmdstan()) "cmdstanr" else "rstan"
  if (engine == "rstan") fit_rstan else fit_cmdstanr
}

has_cmdstan <- function() {
  nzchar(system.file(package = "cmdstanr")) &&
    !is.null(from_cmdstanr("cmdstan_version")(error_on_NA = FALSE))
}

outcome_options <- c("prior_scale", "prior_scale_intercept", "lower", "upper", "edge", "transform",
                     "unit", "min_sd")

# Options by whose they are; unknown ones are refused before anything is fitted.
split_options <- function(options, engine) {
  ours <- names(options) %in% outcome_options
  known <- setdiff(names(formals(engine)), c("program", "data", "seed", "variables"))
  unknown <- setdiff(names(options)[!ours], known)
  if ((length(options) > 0 && is.null(names(options))) || "" %in% names(options)) {
    invalid_input("options in ... must have names")
  }
  if (length(unknown) > 0 && !"..." %in% known) {
    invalid_input("unknown option '", unknown[1], "': ... takes ",
                  paste(c(outcome_options, known), collapse = ", "))
  }
  list(outcome = options[ours], engine = options[!ours])
}

check_release <- function(design, data, accounting, delta, mechanism, refits) {
  n <- length(design$y)
  if (is.null(design$outcome) || !design$outcome %in% names(data)) {
    invalid_input("the outcome must be a column of data, of family normal under transform = \"log\" ",
                  "or \"asinh\" if need be: found an expression")
  }
  if (accounting == "gaussian" && delta >= 1 / n) {
    invalid_input("delta must be below 1 / n = ", short(1 / n), ": found ", short(delta),
                  "; a larger delta allows that a whole record is disclosed")
  }
  if (refits == 0 || isTRUE(mechanism$clips)) {
    return(invisible())
  }
  if (n < 2) invalid_input("data must have at least 2 records for refits without one: found 1")
  alone <- sole_informants(design$X)
  if (nrow(alone) > 0) {
    column <- colnames(design$X)[alone$column[1]]
    invalid_input(
      "record ", alone$record[1], " nearly alone informs a coefficient (", column, ": a share of ",
      sprintf("%.2f", alone$share[1]), " of its information, the most is .30), so that no refit tells ",
      "what it costs: drop or merge ", column, ", leave the record out, or take Python's ",
      "ClippedScores (", nrow(alone), " found)"
    )
  }
}

settings_of <- function(formula, mechanism, family, design, how, refits) {
  reweighting <- if (isFALSE(mechanism$reweight)) {
    FALSE
  } else {
    list(k = mechanism$reweight, tolerance = 0.25, max_refits = 1, recursive = FALSE, search = FALSE)
  }
  inner <- if (!is.null(mechanism$inner)) {
    list(inner = c(list(mechanism = mechanism$inner$name), mechanism$inner$settings))
  }
  own <- c(list(mechanism = mechanism$name), mechanism$settings, inner)
  c(own, list(
    relation = how$relation, accounting = how$accounting, delta = how$delta, refits = refits,
    reweighting = reweighting, model = model_names[[sub("published/", "", family$program)]],
    formula = deparse1(stats::as.formula(formula)),
    prior = if (design$normal_prior) "normal" else "published", made_by = "the R package pyhybrid"
  ), if (design$published) list(program = "published"))
}

# The Python package's names of models, by program.
model_names <- c(
  poisson = "Poisson", negative_binomial = "NegativeBinomial", bernoulli = "Bernoulli",
  normal_regression = "NormalRegression", beta = "Beta", beta_regression = "BetaRegression"
)

# m tables, each from another draw.
replicates <- function(session, fit, m, seed) {
  n_draws <- prod(dim(fit$fit$draws[[1]])[1:2])
  if (m > n_draws) invalid_input("m must be at most the number of draws, ", n_draws)
  outcome <- session$design$outcome
  # One more than the seeds of the fits, which R's own generator would else share.
  with_randomness(if (!is.null(seed)) (seed + 1013) %% .Machine$integer.max, {
    lapply(sample.int(n_draws, m), function(draw) {
      values <- replicate_of(fit$parameters, session$family, session$design, draw)
      table <- as.data.frame(session$data)
      table[[outcome]] <- in_form_of(values, table[[outcome]])
      table
    })
  })
}

#' Replicates of the data from draws of a posterior
#'
#' What [synthesize()] draws synthetic values by, for a fit made by hand with [fit_rstan()] and
#' [stan_data()]: the outcome drawn anew from a draw of the parameters, other columns as they are.
#'
#' @param fit A result of [fit_rstan()] or [fit_cmdstanr()] that kept `beta` (`phi` of family beta) and
#'   the family's second parameter.
#' @param formula,data,family,prior,... As in [synthesize()]; the data that the fit was made from.
#' @param m Number of sets, each from a draw of its own.
#' @param seed Whole number; the system's entropy if `NULL`.
#' @return A list of m data frames. A charge is not part of it: see [lipschitz_bounds()] and
#'   [epsilon_of_bound()].
#' @examples
#' data <- data.frame(visits = c(0, 2, 1, 4))
#' fit <- list(draws = list(beta = array(log(c(1.5, 2, 2.5, 1.8)), c(2, 2, 1))))
#' posterior_replicates(fit, visits ~ 1, data, "poisson", m = 2, seed = 1)
#' @export
posterior_replicates <- function(fit, formula, data, family, m = 1, seed = NULL, prior = NULL, ...) {
  family <- family_of(family)
  check_count(m, "m")
  if (!is.null(seed)) check_count(seed, "seed", at_least = 0)
  design <- program_design(formula, data, family$program, prior, ..., given = names(list(...)))
  if (is.null(design$outcome)) invalid_input("the outcome must be a column of data")
  wanted <- c(if (family$program %in% c("beta", "published/beta")) "phi" else "beta", family$size)
  missing <- setdiff(wanted, names(fit$draws))
  if (length(missing) > 0) {
    invalid_input("fit must hold draws of ", paste(wanted, collapse = " and "), ": ", missing[1],
                  " is not there")
  }
  session <- list(design = design, family = family, data = data)
  replicates(session, list(fit = fit, parameters = parameters_of(fit, family)), m, seed)
}
