# The privacy charge of a release, by the Python package's rules.

accountings <- c("lipschitz", "range", "gaussian")

# Own terms by record, and losses of refits. Confidential.
local_loss <- function(session, fit, mechanism, refits, delta) {
  terms <- weighted_terms(session$log_lik(fit), fit$alpha)
  loss <- list(
    lipschitz = unname(largest_abs(terms)), ranges = unname(spread_of(terms)),
    deviations = matrixStats::colSds(terms, useNames = FALSE), record = integer(0), loss = numeric(0)
  )
  if (refits == 0) {
    return(loss)
  }
  sizes <- unname(largest_abs(session$log_lik(session$unweighted())))
  loss$record <- refit_candidates(loss$deviations, sizes, refits)
  loss$loss <- vapply(seq_along(loss$record), function(place) {
    session$tell("refit ", place, " of ", length(loss$record))
    loss_without(session, fit, mechanism, loss$record[place], delta)
  }, 0)
  loss
}

loss_without <- function(session, fit, mechanism, record, delta) {
  other <- without(session, record)
  other$tell <- function(...) NULL
  refit <- tryCatch(
    weighted_fit(mechanism, other, step_kept = !is.null(fit$before)),
    pyhybrid_sampling_error = identity, pyhybrid_invalid_input = identity
  )
  if (inherits(refit, "error")) {
    sampling_error(
      "a refit without record ", record, " must be possible, or its loss is not known: ",
      conditionMessage(refit), "; refits = 0 takes the weights as fixed"
    )
  }
  weights <- fit$alpha
  weights[-record] <- weights[-record] - refit$alpha
  change <- function(parameters) {
    weighted_total(parameters, session$family, session$design, weights)
  }
  refit_loss(change(fit$parameters), change(refit$parameters), delta)
}

# The charge of a local release: a record of the fields that the Python package stores.
charge_of_fit <- function(session, fit, loss, mechanism, how) {
  bound <- max(loss$lipschitz)
  if (!is.finite(bound)) {
    sampling_error(
      "the Lipschitz bound must be finite: a record with a positive weight has a likelihood of 0 ",
      "under some draw; use a mechanism that gives such records weight 0"
    )
  }
  change <- refit_margin * max(c(loss$loss, 0))
  if (!is.finite(change)) {
    sampling_error(
      "what leaves with a record must be finite at every draw: it is not in a refit without one; ",
      "use a mechanism that gives such records weight 0"
    )
  }
  above <- session$family$above_one
  accounts <- list(
    lipschitz = list(account = "Lipschitz", bound = bound, change = change, either_sign = above),
    range = list(account = "Range", loss_range = max(loss$ranges, change)),
    gaussian = list(account = "Gaussian", mu = mu_of_loss(max(loss$deviations), change, how$delta))
  )
  facts <- c(facts_of_fit(session, fit), list(refits = length(loss$record)))
  new_charge(session, fit, mechanism, how, accounts, how$accounting, bound, facts)
}

mu_of_loss <- function(deviation, change, delta) {
  if (change > 0) max(deviation, mu_of_epsilon(change, delta)) else deviation
}

# Of a clipped posterior the cap is charged. Local: other modes are not looked for here, and decimals
# and codes of the columns are the data's.
charge_of_cap <- function(session, fit, mechanism, how) {
  caps <- check_caps(fit$cap)
  either <- session$family$above_one || !is.null(mechanism$center)
  one <- epsilon_of_bound(caps[1], 1, how$relation, either, kind = "strict")
  pure <- ceiling_at(times(as_decimal(one), as_decimal(how$m)), charge_decimals[["strict"]])
  accounts <- list(pure = list(
    account = "Spent", pure = pure, rho_of_pure = NULL, rho = 0, mu = 0
  ))
  facts <- c(facts_of_fit(session, fit), list(
    clipped = TRUE, center = if (is.null(mechanism$center)) NULL else "given",
    by_record = identical(mechanism$inner$name, "Unweighted"),
    not_covered = list("Other modes of the clipped posterior were not looked for.")
  ))
  new_charge(session, fit, mechanism, how, accounts, "pure", caps[1], facts)
}

facts_of_fit <- function(session, fit) {
  list(
    columns = list(session$design$outcome), public_rows = TRUE, chains = TRUE,
    chosen = "the model and its formula, scale, shift, k", coded = list(), assumes = list(),
    decimals = decimals_of(session$data[[session$design$outcome]]), decimals_given = FALSE,
    problems = as.list(fit$problem), fixed_draws = TRUE
  )
}

new_charge <- function(session, fit, mechanism, how, accounts, accounting, bound, facts) {
  list(
    mechanism = mechanism$name, kind = "asymptotic local", relation = how$relation,
    n_synthetic = how$m, n_draws_released = how$m, accounts = accounts, accounting = accounting,
    delta = if (accounting == "gaussian") how$delta else 0, bound = bound,
    n_draws = prod(dim(fit$fit$draws[[1]])[1:2]), draw_quantile = 1,
    cap = if (!is.null(mechanism$cap)) mechanism$cap(how$relation, session$family),
    safety_factor = 1, density_above_one = session$family$above_one, converged = fit$converged,
    unit = NULL, facts = facts, parts = list()
  )
}

# Epsilon by an accounting, rounded up; NA where it is not known.
epsilon_by <- function(record, accounting, delta = record$delta) {
  account <- record$accounts[[accounting]]
  m <- record$n_draws_released
  relation <- record$relation
  kind <- record$kind
  if (is.null(account)) {
    return(NA_real_)
  }
  switch(account$account,
    Lipschitz = max(
      epsilon_of_bound(account$bound, m, relation, account$either_sign, kind = kind),
      epsilon_of_range(account$change, m, relation, kind)
    ),
    Range = epsilon_of_range(account$loss_range, m, relation, kind),
    Gaussian = if (delta > 0) {
      round_up(epsilon_of_mu(mu_of_release(account$mu, m, relation), delta), kind)
    } else {
      NA_real_
    },
    Spent = epsilon_of_spent(account, delta, kind)
  )
}

# Of noise or a cap: pure, or mu alone at a delta; what rho composes to is the Python package's.
epsilon_of_spent <- function(account, delta, kind) {
  noisy <- account$rho > 0 || account$mu > 0
  if (!noisy) {
    return(round_up(account$pure, kind))
  }
  if (account$rho > 0 || account$pure > 0 || delta == 0) {
    return(NA_real_)
  }
  round_up(epsilon_of_mu(account$mu, delta), kind)
}

# The public part of a charge; the Gaussian epsilon at a delta beside it, where that is given.
public_charge <- function(record, delta = record$delta) {
  public <- c("mechanism", "kind", "relation", "n_synthetic", "n_draws_released", "accounting", "delta",
              "n_draws", "draw_quantile", "cap", "safety_factor", "density_above_one", "converged",
              "unit")
  local <- record$kind == "asymptotic local"
  published <- if (local && !is.null(record$accounts$lipschitz)) {
    epsilon_of_bound(record$bound, record$n_draws_released, record$relation,
      record$density_above_one, record$safety_factor)
  } else {
    NA_real_
  }
  structure(
    c(
      list(epsilon = epsilon_by(record, record$accounting)), record[intersect(public, names(record))],
      list(
        epsilon_published = published, epsilon_lipschitz = epsilon_by(record, "lipschitz"),
        epsilon_range = epsilon_by(record, "range"),
        epsilon_gaussian = epsilon_by(record, "gaussian", delta),
        mu = if (is.null(record$accounts$gaussian)) NA_real_ else record$accounts$gaussian$mu,
        refits = if (is.null(record$facts$refits)) NA_real_ else record$facts$refits
      )
    ),
    class = "pyhybrid_charge"
  )
}

#' Charge of a release, and what is confidential of it
#'
#' `charge()` is what a release costs, fit to be published; `confidential()` what must stay with the
#' data owner.
#' @param x A result of [synthesize()] or [from_release()]; for `format()` and `print()` a charge.
#' @param ... Not used.
#' @return `charge()`: an object of class `pyhybrid_charge`, a list with `epsilon` in nats, of all sets
#'   and rounded up; `kind`, `relation`, `accounting`, `delta`; `epsilon_published`, the papers'
#'   \eqn{2\Delta} a draw with the weights taken as fixed, and `epsilon_lipschitz`, `epsilon_range`,
#'   `epsilon_gaussian`, which stand side by side; `refits`, the number of records that were left out.
#'   It can be given to [compose()]. `confidential()`: a list with `alpha`, `bounds`
#'   ([lipschitz_bounds()]), `unweighted` and `weighted` (fits), `loss`, `charge` and `seed`.
#' @examples
#' release <- from_release(system.file("extdata", "release", package = "pyhybrid"))
#' charge(release)
#' names(confidential(release))
#' @export
charge <- function(x, ...) UseMethod("charge")

#' @rdname charge
#' @export
charge.pyhybrid_release <- function(x, ...) x$charge

#' @rdname charge
#' @export
confidential <- function(x, ...) UseMethod("confidential")

#' @rdname charge
#' @export
confidential.pyhybrid_release <- function(x, ...) as.list(x$confidential)

#' @rdname charge
#' @export
format.pyhybrid_charge <- function(x, ...) {
  at <- if (x$delta > 0) paste0(" at delta = ", short(x$delta)) else ""
  as_published <- if (identical(x$refits, 0) || identical(x$refits, 0L)) {
    ", as published: the weights are taken as fixed"
  } else {
    ""
  }
  paste0("epsilon = ", format(x$epsilon, digits = 15), at, " (", x$kind, ", ", x$relation,
         " one record", as_published, ")")
}

#' @rdname charge
#' @export
print.pyhybrid_charge <- function(x, ...) {
  cat("Privacy charge of ", x$mechanism, ": ", format(x), "\n", sep = "")
  beside <- c(
    "as published, 2 Delta" = x$epsilon_published, "lipschitz" = x$epsilon_lipschitz,
    "range" = x$epsilon_range, "gaussian" = x$epsilon_gaussian
  )
  beside <- beside[!is.na(beside)]
  if (length(beside) > 0) {
    cat("  by accounting: ", paste(names(beside), vapply(beside, format, "", digits = 15),
      sep = " ", collapse = "; "), "\n", sep = "")
  }
  cat("  ", x$n_synthetic, " synthetic set(s) from ", x$n_draws_released, " draw(s)",
      if (!is.na(x$refits) && x$refits > 0) paste0(", ", x$refits, " refits without a record"),
      if (!x$converged) "; the chains had NOT converged", "\n", sep = "")
  invisible(x)
}
