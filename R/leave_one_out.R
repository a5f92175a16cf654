#' Leave-one-out loss
#'
#' \eqn{L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})} with \eqn{g_i = \alpha_i f_i} is
#' the privacy loss of releasing draw s about record i, estimated and not bounded, with the weights
#' taken as fixed. The sum is Pareto smoothed, by the package loo, as in PSIS-LOO.
#'
#' @param log_lik As in [lipschitz_bounds()]. A record that is not finite in any draw has an infinite
#'   loss.
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @return A list with `by_record` (vector of length n) and `by_draw` (vector of length S), the
#'   largest `abs(L)` over draws and over records; and `pareto_k` (vector of length n): above 0.7
#'   the loss is unreliable,
#'   `-Inf` where the term does not move, `Inf` where there are too few draws to tell. Confidential.
#' @references Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432.
#' @examples
#' if (requireNamespace("loo", quietly = TRUE)) {
#'   leave_one_out_loss(-matrix(stats::rgamma(800, 5, 10), 400))$by_record
#' }
#' @export
leave_one_out_loss <- function(log_lik, alpha = NULL) {
  if (!requireNamespace("loo", quietly = TRUE)) {
    stop("leave_one_out_loss() needs the package loo: install.packages(\"loo\")", call. = FALSE)
  }
  terms <- weighted_terms(log_lik, alpha)
  found <- lapply(seq_len(ncol(terms)), function(i) loss_of(terms[, i]))
  loss <- do.call(cbind, lapply(found, function(one) one$loss))
  list(
    by_record = stats::setNames(matrixStats::colMaxs(loss, useNames = FALSE), colnames(terms)),
    by_draw = matrixStats::rowMaxs(loss, useNames = FALSE),
    pareto_k = vapply(found, function(one) one$k, 0)
  )
}

# abs(L) of one record over the draws, and k.
loss_of <- function(term) {
  if (!is.finite(max(term) - min(term))) {
    return(list(loss = rep(Inf, length(term)), k = Inf))
  }
  if (max(term) == min(term)) {
    return(list(loss = rep(0, length(term)), k = -Inf))
  }
  smoothed <- -term
  k <- Inf
  if (length(term) >= 10) {
    fit <- suppressWarnings(loo::psis(matrix(-term), r_eff = 1))
    smoothed <- as.vector(fit$log_weights)
    k <- unname(fit$diagnostics$pareto_k)
  }
  top <- max(smoothed)
  list(loss = abs(term + top + log(mean(exp(smoothed - top)))), k = k)
}
