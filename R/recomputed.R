# What a record changes where weights were computed on the same data.

#' The whole change of a record
#'
#' \eqn{T_i = \sum_j \alpha_j(x) f_j - \sum_{j \ne i} \alpha_j(x_{-i}) f_j}: what leaves the log
#' pseudo posterior with record i where the weights of the others are computed anew without it. Its
#' range, deviation and leave-one-out loss are those of [loss_ranges()], [gaussian_mu()] and
#' [leave_one_out_loss()], which take the matrix of T without weights.
#'
#' `lipschitz_without()` makes Lipschitz weights with and without each record. When a record leaves,
#' the risks of all others move, too, as they were read from draws of a posterior that lies elsewhere
#' without it: importance weights exp(-f_i) give the mean and spread of each log-likelihood there, and
#' a risk keeps its standardized distance (the range that of the first and last decile).
#' `weights_without()` is for maps that read no draws, such as counts.
#'
#' @param log_lik Matrix, S draws in rows and n records in columns: the UNWEIGHTED log-likelihood
#'   in nats, at draws from the posterior with the weights of all records.
#' @param weights List of `alpha`, the weights of all n records, and `without`, an n by n matrix whose
#'   row i has the weights without record i; its own entry does not count.
#' @param scale,shift,transform,threshold,risk As in [lipschitz_weights()]; for
#'   `lipschitz_without()`, `log_lik` is at draws of the UNWEIGHTED posterior.
#' @param weigh Function of the kept records, a vector of positions, that gives their weights, from
#'   these records alone.
#' @param n Number of records.
#' @return A matrix with the dimensions of `log_lik`; a list as `weights`. Confidential.
#' @references Savitsky, Williams, Hu (2022), sec. 3. Hu, Savitsky, Williams, Maximizing utility for
#'   vector-weighted pseudo posterior mechanisms, alg. 1 and 2.
#' @examples
#' log_lik <- rbind(c(-1, -2, -4), c(-1.5, -2, -3))
#' f <- c(1.5, 2, 4)
#' recomputed_terms(log_lik, weights_without(function(kept) weights_from_lipschitz(f[kept]), 3))
#' @export
recomputed_terms <- function(log_lik, weights) {
  log_lik <- check_log_lik(log_lik)
  n <- ncol(log_lik)
  if (!is.list(weights) || !identical(dim(weights$without), c(n, n))) {
    invalid_input("weights must be a list of alpha and of a matrix without, of shape (n, n), n = ", n)
  }
  whole <- rowSums(weighted_terms(log_lik, weights$alpha))
  changes <- vapply(seq_len(n), function(i) {
    alpha <- weights$without[i, ]
    alpha[i] <- 0
    whole - rowSums(weighted_terms(log_lik, alpha))
  }, whole)
  matrix(changes, nrow(log_lik), n)
}

#' @rdname recomputed_terms
#' @export
weights_without <- function(weigh, n) {
  if (!is.function(weigh)) {
    invalid_input("weigh must be a function of the kept records: found ", class(weigh)[1])
  }
  n <- check_count(n, "n")
  without <- matrix(0, n, n)
  for (i in seq_len(n)) {
    kept <- seq_len(n)[-i]
    if (length(kept) > 0) without[i, kept] <- check_alpha(weigh(kept), length(kept))
  }
  list(alpha = check_alpha(weigh(seq_len(n)), n), without = without)
}

#' @rdname recomputed_terms
#' @export
lipschitz_without <- function(log_lik, scale = 1, shift = 0, transform = "linear",
                              threshold = NULL, risk = "size") {
  check_choice(risk, "risk", names(risks))
  log_lik <- check_log_lik(log_lik)
  n <- ncol(log_lik)
  own <- risks_of(log_lik, risk)
  map <- function(f) weights_from_lipschitz(f, scale, shift, transform, threshold)
  without <- matrix(0, n, n)
  for (i in seq_len(n)) {
    kept <- seq_len(n)[-i]
    if (length(kept) > 0) without[i, kept] <- map(moved_risks(log_lik, own, i, risk)[kept])
  }
  list(alpha = map(own), without = without)
}

# Risks of all records, infinite where a log-likelihood is.
risks_of <- function(log_lik, risk) {
  bounded <- apply(is.finite(log_lik), 2, all)
  f <- rep(Inf, ncol(log_lik))
  if (any(bounded)) f[bounded] <- risks[[risk]](log_lik[, bounded, drop = FALSE])
  f
}

# The same standardized extremes under the posterior without record i, by importance weights.
moved_risks <- function(log_lik, own, i, risk) {
  weight <- if (is.finite(own[i])) exp(min(log_lik[, i]) - log_lik[, i]) else rep(1, nrow(log_lik))
  weight <- weight / sum(weight)
  even <- rep(1 / nrow(log_lik), nrow(log_lik))
  vapply(seq_along(own), function(j) {
    if (!is.finite(own[j])) return(Inf)
    f <- log_lik[, j]
    before <- moments(f, even, risk)
    after <- moments(f, weight, risk)
    scale <- if (before[["spread"]] > 0) after[["spread"]] / before[["spread"]] else 1
    if (risk != "size") return(own[j] * scale)
    place <- if (before[["mean"]] < 0) -after[["mean"]] else after[["mean"]]
    max(place + (own[j] - abs(before[["mean"]])) * scale, 0)
  }, 0)
}

moments <- function(f, weight, risk) {
  mean <- sum(weight * f)
  spread <- if (risk == "range") {
    diff(weighted_quantiles(f, weight, c(0.1, 0.9)))
  } else {
    sqrt(sum(weight * (f - mean)^2))
  }
  c(mean = mean, spread = spread)
}

# Quantiles at the middle of each draw's share of the weights, between them on a line.
weighted_quantiles <- function(f, weight, shares) {
  order <- order(f)
  f <- f[order]
  weight <- weight[order]
  mass <- cumsum(weight) - weight / 2
  vapply(shares, function(share) {
    above <- min(max(sum(mass < share), 1), length(f) - 1)
    step <- mass[above + 1] - mass[above]
    at <- if (step > 0) (share - mass[above]) / step else 0
    f[above] + min(max(at, 0), 1) * (f[above + 1] - f[above])
  }, 0)
}
