# What a record changes where weights were computed on the same data.

#' The whole change of a record
#'
#' \eqn{T_i = \sum_j \alpha_j(x) f_j - \sum_{j \ne i} \alpha_j(x_{-i}) f_j}: what leaves the log
#' pseudo posterior with record i where the weights of the others are computed anew without it, on the
#' same reference draws. Its range, deviation and leave-one-out loss are those of [loss_ranges()],
#' [gaussian_mu()] and [leave_one_out_loss()], which take the matrix of T without weights. By
#' definition, in S n^2; the Python package has forms that cost S n for the papers' maps.
#' `weights_without()` makes the weights with and without each record from any map.
#'
#' @param log_lik Matrix, S draws in rows and n records in columns: the UNWEIGHTED log-likelihood
#'   in nats, at draws from the posterior with the weights of all records.
#' @param weights List of `alpha`, the weights of all n records, and `without`, an n by n matrix whose
#'   row i has the weights without record i; its own entry does not count.
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
