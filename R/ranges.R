# Loss ranges: how far a record's log-likelihood moves, and what that costs.

#' Loss ranges from a log-likelihood matrix
#'
#' Without record i the log pseudo posterior changes by \eqn{g_i - \log E[\exp g_i]} with
#' \eqn{g_i = \alpha_i f_i}. A constant in \eqn{g_i} cancels, so that the privacy loss of a released
#' draw lies within the range \eqn{R_i = \max_s g_{is} - \min_s g_{is}}, which is never above the
#' papers' \eqn{2 \max_s |g_{is}|}. Over S draws it is an estimate from below: it says nothing of
#' losses rarer than about one in S.
#'
#' @param log_lik As in [lipschitz_bounds()]. A record that is not finite in any draw has an infinite
#'   range.
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`. A weight of 0 has
#'   range 0.
#' @param draw_quantile q in (0, 1\]. With \eqn{T_s = \max_i |g_{is} - \mathrm{median}\, g_i|} over
#'   the records with a finite range and `L = quantile(T, q, type = 7)`, draws with `T > L` are
#'   dropped whole.
#' @return A list with `by_record` (vector of length n), `overall`, `kept_draws` (logical vector of
#'   length S) and `draw_quantile`. All but the last are functions of the confidential data.
#' @references Durfee, Rogers (2019), Practical differentially private top-k selection with
#'   pay-what-you-get composition, NeurIPS. Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2.
#' @examples
#' loss_ranges(rbind(c(-1, -40), c(-2, -40.5)), alpha = c(1, 0.5))
#' @export
loss_ranges <- function(log_lik, alpha = NULL, draw_quantile = 1) {
  terms <- weighted_terms(log_lik, alpha)
  draw_quantile <- check_fraction(draw_quantile, "draw_quantile")
  bounded <- is.finite(spread_of(terms))
  kept <- rep(TRUE, nrow(terms))
  if (draw_quantile < 1 && any(bounded)) {
    used <- terms[, bounded, drop = FALSE]
    middle <- matrixStats::colMedians(used, useNames = FALSE)
    farthest <- matrixStats::rowMaxs(abs(used - rep(middle, each = nrow(used))), useNames = FALSE)
    kept <- farthest <= stats::quantile(farthest, draw_quantile, names = FALSE, type = 7)
  }
  by_record <- spread_of(terms[kept, , drop = FALSE])
  by_record[!bounded] <- Inf
  list(
    by_record = by_record, overall = max(by_record), kept_draws = kept,
    draw_quantile = draw_quantile
  )
}

# g_i, all 0 for a weight of 0 even where the log-likelihood is not finite.
weighted_terms <- function(log_lik, alpha) {
  log_lik <- check_log_lik(log_lik)
  alpha <- check_alpha(alpha, ncol(log_lik))
  terms <- log_lik * rep(alpha, each = nrow(log_lik))
  terms[, alpha == 0] <- 0
  terms
}

# Largest less smallest value of each column, with its name; not finite if any value is not.
spread_of <- function(terms) {
  range <- matrixStats::colRanges(terms, useNames = FALSE)
  stats::setNames(range[, 2] - range[, 1], colnames(terms))
}

#' Epsilon of ranges
#'
#' `epsilon_of_range()` is the pure epsilon of m released draws, m R, or 2 m R where a record is
#' replaced, rounded up. `rho_of_range()` is their rho of zero-concentrated privacy, m eta^2 / 8 with
#' eta = R or 2 R; rho of several releases adds. `epsilon_of_rho()` turns rho into epsilon at a public
#' delta, \eqn{\rho + 2 \sqrt{\rho \log(1/\delta)}}.
#'
#' @param loss_range R in nats, >= 0, finite: `loss_ranges(...)$overall`.
#' @param n_draws_released Posterior draws released.
#' @param relation `"remove"` or `"replace"`; under the latter R must hold for every record that
#'   could take a place, too.
#' @param kind `"asymptotic local"` (rounded to 2 decimals) or `"strict"` (6 decimals).
#' @param rho Of zero-concentrated privacy, >= 0.
#' @param delta In (0, 1).
#' @return A number.
#' @references Durfee, Rogers (2019), NeurIPS. Cesar, Rogers (2021), Bounding, concentrating, and
#'   truncating, ALT. Bun, Steinke (2016), Concentrated differential privacy, TCC, prop. 1.3.
#' @examples
#' epsilon_of_range(0.364, n_draws_released = 3)
#' epsilon_of_rho(rho_of_range(0.5, n_draws_released = 20), delta = 1e-6)
#' @export
epsilon_of_range <- function(loss_range, n_draws_released = 1, relation = "remove",
                             kind = "asymptotic local") {
  check_choice(kind, "kind", charge_kinds)
  loss_range <- as_decimal(check_nonnegative(loss_range, "loss_range"))
  ceiling_at(of_draws(loss_range, n_draws_released, relation), charge_decimals[[kind]])
}

# An exact number for each of m draws, twice where a record is replaced.
of_draws <- function(decimal, n_draws_released, relation) {
  sides <- relation_sides(relation)
  draws <- check_count(n_draws_released, "n_draws_released")
  times(decimal, as_decimal(sides * draws))
}

#' @rdname epsilon_of_range
#' @export
rho_of_range <- function(loss_range, n_draws_released = 1, relation = "remove") {
  eta <- times(
    as_decimal(check_nonnegative(loss_range, "loss_range")), as_decimal(relation_sides(relation))
  )
  draws <- as_decimal(check_count(n_draws_released, "n_draws_released"))
  at_least(Reduce(times, list(eta, eta, draws, as_decimal(0.125))))
}

#' @rdname epsilon_of_range
#' @export
epsilon_of_rho <- function(rho, delta) {
  rho <- check_nonnegative(rho, "rho")
  # Above what rounding of four operations can hide.
  (rho + 2 * sqrt(rho * -log(check_delta(delta)))) * (1 + 4 * .Machine$double.eps)
}

relation_sides <- function(relation) {
  if (check_choice(relation, "relation", charge_relations) == "replace") 2 else 1
}

check_nonnegative <- function(value, name) {
  number <- check_finite(value, name)
  if (number < 0) invalid_input(name, " must be >= 0: found ", short(number))
  number
}

check_delta <- function(value) {
  number <- check_finite(value, "delta")
  if (number <= 0 || number >= 1) {
    invalid_input("delta must lie in (0, 1): found ", short(number))
  }
  number
}

#' Re-centered censoring
#'
#' `center_and_censor()` gives the terms max(-a, min(b, alpha_i (f_si - c_i))), which range over at
#' most a + b for any data and any parameter. A weight of 0 gives 0; an infinite f_si gives -a or b;
#' a missing one -a, as a likelihood of 0 would. `epsilon_of_censoring()` is the strict charge of m
#' draws: m (a + b), or 2 m (a + b) where a record is replaced; 2 M and 4 M for one cap M.
#' `frozen_excess()` is what clipping takes from the terms of a reference on average, by draw.
#'
#' @param log_lik Matrix, S draws by n records, unweighted, in nats.
#' @param center c_i in nats, finite, a vector of length n: the record's log-likelihood at a frozen
#'   or released parameter. 0 if `NULL`, which is [censor()].
#' @param alpha Weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @param cap M in nats, above 0; or `c(a, b)`, none below 0 and one above.
#' @param excess e in nats, length S: a frozen function of the parameters such as `frozen_excess()`
#'   of a reference, added to each term before it is clipped; 0 if `NULL`.
#' @param n_draws_released,relation As in [epsilon_of_range()].
#' @param discrete_uncentered The outcome is discrete, so that f <= 0, and has no center: terms lie
#'   in \[-a, 0\], and the range is a.
#' @return A matrix with the dimensions of `log_lik`; a number.
#' @references Hu, Williams, Savitsky (2025), sec. 3, for a center of 0. Durfee, Rogers (2019).
#' @examples
#' center_and_censor(rbind(c(-5, -9)), center = c(-4.8, -6), cap = 0.5)
#' epsilon_of_censoring(0.25, relation = "replace")
#' @export
center_and_censor <- function(log_lik, center = NULL, alpha = NULL, cap, excess = NULL) {
  if (missing(cap)) invalid_input("cap must be given: M in nats, above 0")
  log_lik <- check_log_lik(log_lik)
  n <- ncol(log_lik)
  center <- if (is.null(center)) rep(0, n) else check_vector(center, "center", n)
  wrong <- which(!is.finite(center))
  if (length(wrong) > 0) {
    invalid_input(
      "center must be finite: that of record ", wrong[1], " is not; take a parameter at which ",
      "every record has a density"
    )
  }
  caps <- check_caps(cap)
  terms <- weighted_terms(log_lik - rep(center, each = nrow(log_lik)), alpha)
  terms[is.na(terms)] <- -Inf
  if (!is.null(excess)) {
    excess <- check_vector(excess, "excess", nrow(log_lik))
    wrong <- which(!is.finite(excess))
    if (length(wrong) > 0) {
      invalid_input("excess must be finite: that of draw ", wrong[1], " is not")
    }
    used <- if (is.null(alpha)) rep(TRUE, n) else alpha > 0
    terms[, used] <- terms[, used] + excess
  }
  terms[] <- clip(terms, -caps[1], caps[2])
  terms
}

#' @rdname center_and_censor
#' @export
frozen_excess <- function(log_lik, center = NULL, alpha = NULL, cap) {
  if (missing(cap)) invalid_input("cap must be given: M in nats, above 0")
  clipped <- center_and_censor(log_lik, center, alpha, cap)
  log_lik <- check_log_lik(log_lik)
  center <- if (is.null(center)) rep(0, ncol(log_lik)) else center
  terms <- weighted_terms(log_lik - rep(center, each = nrow(log_lik)), alpha)
  wrong <- which(colSums(!is.finite(terms)) > 0)
  if (length(wrong) > 0) {
    invalid_input(
      "terms of a reference must be finite: that of record ", wrong[1], " is not in some draw"
    )
  }
  rowMeans(terms - clipped)
}

#' @rdname center_and_censor
#' @export
epsilon_of_censoring <- function(cap, n_draws_released = 1, relation = "remove",
                                 discrete_uncentered = FALSE) {
  caps <- check_caps(cap)
  width <- as_decimal(caps[1])
  if (!check_flag(discrete_uncentered, "discrete_uncentered")) {
    width <- plus(width, as_decimal(caps[2]))
  }
  ceiling_at(of_draws(width, n_draws_released, relation), charge_decimals[["strict"]])
}

check_caps <- function(cap) {
  if (length(cap) == 1) {
    return(rep(check_positive(cap, "cap"), 2))
  }
  caps <- check_vector(cap, "cap")
  if (length(caps) != 2 || !all(is.finite(caps)) || min(caps) < 0 || max(caps) == 0) {
    invalid_input(
      "cap must be one number above 0, or two, none below 0 and one above: found ",
      paste(short(caps), collapse = ", ")
    )
  }
  caps
}
