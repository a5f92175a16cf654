# Fits of one table by one family: what mechanisms ask for, and what a release is made of.

# `given` has design, family, outcome, data, relation, engine (a function like fit_rstan), its options,
# seed, on_not_converged and tell. Fits with the same name are those of another session's with the same
# seed, so that a refit without a record differs from it by that record.
new_session <- function(given) {
  session <- list2env(given, parent = emptyenv())
  session$n <- length(session$design$y)
  session$columns <- function(pattern) pattern_columns(session, pattern)
  session$log_lik <- function(fit) log_lik_at(fit$parameters, session$family, session$design)
  session$unweighted <- function() {
    if (is.null(session$held)) session$held <- fit_weights(session, rep(1, session$n), "unweighted")
    session$held
  }
  session
}

pattern_columns <- function(session, pattern) {
  if (length(pattern) == 0) {
    return(NULL)
  }
  wrong <- setdiff(pattern, setdiff(names(session$data), session$design$outcome))
  if (length(wrong) > 0) {
    invalid_input("pattern must name columns that are not synthesized: found '", wrong[1], "'")
  }
  as.data.frame(session$data)[pattern]
}

without <- function(session, i) {
  given <- mget(
    c("family", "relation", "engine", "options", "seed", "on_not_converged", "tell"),
    envir = session
  )
  new_session(c(given, list(
    design = without_record(session$design, i), outcome = session$outcome[-i],
    data = session$data[-i, , drop = FALSE]
  )))
}

# A fit under weights: the engine's result, parameters for densities, weights, cap.
fit_weights <- function(session, alpha, name, cap = NULL, center = NULL) {
  family <- session$family
  data <- program_data(session$design, alpha, cap, center)
  if (!is.null(data$emit_log_lik)) data$emit_log_lik <- 0 # computed here, for all records
  wanted <- c(if (family$program %in% c("beta", "published/beta")) "phi" else "beta", family$size)
  if (isTRUE(data$normal_prior == 0)) wanted <- c(wanted, "sigma_beta")
  session$tell(name, " fit")
  fit <- with_remedy(family$program, do.call(session$engine, c(
    list(family$program, data, variables = wanted, seed = seed_of(session$seed, name)),
    session$options
  )))
  problem <- not_converged(fit, family$program)
  if (!is.null(problem)) {
    if (session$on_not_converged == "raise") sampling_error(problem)
    warning(problem, call. = FALSE)
  }
  list(
    fit = fit, parameters = parameters_of(fit, family), alpha = alpha, cap = cap,
    converged = is.null(problem), problem = problem
  )
}

# A seed by what is fitted: the same in every session of a release.
seed_of <- function(seed, name) {
  place <- match(name, c("unweighted", "weighted", "re-weighted", "inner weighted", "inner re-weighted",
                         "censored"))
  as.integer((as.double(seed) + place - 1) %% .Machine$integer.max)
}

# The fit that draws are released from, its weights before and after re-weighting.
weighted_fit <- function(mechanism, session, step_kept = NULL, prefix = "") {
  alpha <- mechanism$weights(session)
  if (isTRUE(mechanism$clips)) {
    cap <- mechanism$cap(session$relation, session$family)
    return(fit_weights(session, alpha, "censored", cap, center_terms(mechanism$center, session)))
  }
  start <- if (all(alpha == 1)) {
    session$unweighted()
  } else {
    fit_weights(session, alpha, paste0(prefix, "weighted"))
  }
  if (isFALSE(mechanism$reweight)) {
    return(start)
  }
  before <- lipschitz_bounds(session$log_lik(start), alpha)
  if (!is.finite(before$overall) || before$overall == 0) {
    invalid_input("re-weighting needs a finite bound above 0: found ", short(before$overall))
  }
  raised <- reweight(alpha, before$by_record, k = mechanism$reweight, bound = before$overall)
  if (identical(step_kept, FALSE)) {
    return(start)
  }
  again <- fit_weights(session, raised, paste0(prefix, "re-weighted"))
  after <- lipschitz_bounds(session$log_lik(again), raised)
  if (is.null(step_kept) && after$overall > before$overall + 0.25) {
    warning(
      "re-weighting at k = ", mechanism$reweight, " raised the bound by more than 0.25 nats: the ",
      "weights it started from are released; lower k",
      call. = FALSE
    )
    return(start)
  }
  again$before <- before
  again
}

# c_i: the log-likelihood at public parameters.
center_terms <- function(center, session) {
  if (is.null(center)) {
    return(NULL)
  }
  family <- session$family
  first <- if (family$program == "beta") "phi" else "beta"
  wanted <- c(first, family$size)
  if (!setequal(names(center), wanted) || startsWith(family$program, "published/")) {
    invalid_input("center must have ", paste(wanted, collapse = " and "), ", for a program of this ",
                  "package: found ", paste(names(center), collapse = ", "))
  }
  K <- ncol(session$design$X)
  at <- list(size = if (!is.null(family$size)) check_positive(center[[family$size]], family$size))
  if (first == "beta") {
    at$beta <- matrix(check_vector(center$beta, "beta of center", K), 1)
  } else {
    at$mean <- check_fraction(center$phi, "phi of center")
  }
  drop(log_lik_at(at, family, session$design))
}

# What to say of chains of a published program that failed.
remedy_if_published <- function(program) {
  name <- sub("^published/", "", program)
  if (name == program) return("")
  paste0("; family \"", name, "\" samples the same posterior, faster")
}

with_remedy <- function(program, made) {
  tryCatch(made, pyhybrid_sampling_error = function(problem) {
    sampling_error(conditionMessage(problem), remedy_if_published(program))
  })
}

# The Python package's rule of convergence: what fails it, or NULL.
not_converged <- function(fit, program) {
  found <- fit$diagnostics
  size <- dim(fit$draws[[1]])
  if (isTRUE(found$rhat <= 1.01 && min(found$ess_bulk, found$ess_tail) >= 100 * size[1] &&
    found$divergences <= 0.001 * prod(size[1:2]))) {
    return(NULL)
  }
  paste0(
    "the fit did not converge: R-hat ", short(found$rhat), " (1.01 at most), effective draws ",
    short(floor(min(found$ess_bulk, found$ess_tail))), " (", 100 * size[1], " at least), divergences ",
    found$divergences, " (", floor(0.001 * prod(size[1:2])), " at most). Give more iter_warmup and ",
    "iter_sampling, an adapt_delta nearer to 1, or on_not_converged = \"warn\" to release anyway",
    remedy_if_published(program)
  )
}
