# What a record changes where weights were computed on the same data.

#' The whole change of a record
#'
#' \eqn{T_i = \sum_j \alpha_j(x) f_j - \sum_{j \ne i} \alpha_j(x_{-i}) f_j}: what leaves the log
#' pseudo posterior with record i where the weights of the others are computed anew without it, on the
#' same reference draws. Its range, deviation and leave-one-out loss are those of [loss_ranges()],
#' [gaussian_mu()] and [leave_one_out_loss()], which take the matrix of T without weights. By
#' definition, in S n^2; the Python package has forms that cost S n for the papers' maps.
#'
#' @param log_lik Matrix, S draws in rows and n records in columns: the UNWEIGHTED log-likelihood
#'   in nats, at draws from the posterior with the weights of all records.
#' @param weigh Function of the kept records, a vector of positions, that gives their weights, from
#'   these records alone.
#' @return A matrix of the shape of `log_lik`. Confidential.
#' @references Savitsky, Williams, Hu (2022), sec. 3. Hu, Savitsky, Williams, Maximizing utility for
#'   vector-weighted pseudo posterior mechanisms, alg. 1 and 2.
#' @examples
#' log_lik <- rbind(c(-1, -2, -4), c(-1.5, -2, -3))
#' f <- c(1.5, 2, 4)
#' recomputed_terms(log_lik, function(kept) weights_from_lipschitz(f[kept]))
#' @export
recomputed_terms <- function(log_lik, weigh) {
  log_lik <- check_log_lik(log_lik)
  if (!is.function(weigh)) {
    invalid_input("weigh must be a function of the kept records: found ", class(weigh)[1])
  }
  n <- ncol(log_lik)
  summed <- function(kept) {
    if (length(kept) == 0) {
      return(rep(0, nrow(log_lik)))
    }
    alpha <- check_alpha(weigh(kept), length(kept))
    rowSums(weighted_terms(log_lik[, kept, drop = FALSE], alpha))
  }
  whole <- summed(seq_len(n))
  changes <- vapply(seq_len(n), function(i) whole - summed(seq_len(n)[-i]), whole)
  matrix(changes, nrow(log_lik), n)
}
