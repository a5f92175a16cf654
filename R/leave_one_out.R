# Leave-one-out loss: what a release of these draws really tells about each record.

#' Leave-one-out loss
#'
#' \eqn{L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})} with \eqn{g_i = \alpha_i f_i} is
#' the privacy loss of releasing draw s about record i, estimated and not bounded. The sum is Pareto
#' smoothed, as in PSIS-LOO.
#'
#' @param log_lik As in [lipschitz_bounds()]. A record that is not finite in any draw has an infinite
#'   loss.
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @return A list with `by_record` (vector of length n) and `by_draw` (vector of length S), the
#'   largest `abs(L)` over draws and over records; `quantiles` (n by 3) of `abs(L)` over the draws
#'   at `probabilities`; and `pareto_k` (vector of length n): above 0.7 the loss is unreliable,
#'   `-Inf` where the term does not move, `Inf` where there are too few draws to tell. Confidential.
#' @references Vehtari, Gelman, Gabry (2017), Statistics and Computing 27:1413-1432. Zhang, Stephens
#'   (2009), Technometrics 51:316-325.
#' @examples
#' leave_one_out_loss(rbind(c(-1, -3), c(-2, -3)))$by_record
#' @export
leave_one_out_loss <- function(log_lik, alpha = NULL) {
  terms <- weighted_terms(log_lik, alpha)
  probabilities <- c(0.5, 0.9, 0.99)
  found <- lapply(seq_len(ncol(terms)), function(i) loss_of(terms[, i]))
  loss <- do.call(cbind, lapply(found, function(one) one$loss))
  quantiles <- apply(loss, 2, function(own) {
    if (any(is.infinite(own))) rep(Inf, 3) else stats::quantile(own, probabilities, names = FALSE)
  })
  list(
    by_record = stats::setNames(matrixStats::colMaxs(loss, useNames = FALSE), colnames(terms)),
    by_draw = matrixStats::rowMaxs(loss, useNames = FALSE),
    quantiles = t(quantiles), probabilities = probabilities,
    pareto_k = vapply(found, function(one) one$k, 0)
  )
}

# abs(L) of one record over the draws, and k.
loss_of <- function(term) {
  if (!is.finite(max(term) - min(term))) {
    return(list(loss = rep(Inf, length(term)), k = Inf))
  }
  smoothed <- smooth_weights(-term)
  loss <- abs(term + log_mean_exp(smoothed$log_weights))
  if (smoothed$k == -Inf) loss[] <- 0
  list(loss = loss, k = smoothed$k)
}

log_mean_exp <- function(x) max(x) + log(mean(exp(x - max(x))))

# Log weights with the largest replaced by quantiles of a generalized Pareto distribution fitted to
# them, and its shape k.
smooth_weights <- function(log_weights) {
  top <- max(log_weights)
  x <- log_weights - top
  size <- length(x)
  if (-min(x) <= 1e-10) {
    return(list(log_weights = log_weights, k = -Inf))
  }
  n_tail <- ceiling(min(size / 5, 3 * sqrt(size)))
  if (n_tail < 5) {
    return(list(log_weights = log_weights, k = Inf))
  }
  cut <- max(sort(x, decreasing = TRUE)[n_tail + 1], log(.Machine$double.xmin))
  tail <- which(x > cut)
  if (length(tail) < 5) {
    return(list(log_weights = log_weights, k = Inf))
  }
  tail <- tail[order(x[tail])]
  fit <- pareto_fit(exp(x[tail]) - exp(cut))
  if (!is.finite(fit$k) || !isTRUE(fit$sigma > 0)) {
    return(list(log_weights = log_weights, k = Inf))
  }
  share <- -log1p(-(seq_along(tail) - 0.5) / length(tail))
  standard <- if (abs(fit$k) < .Machine$double.eps) share else expm1(fit$k * share) / fit$k
  log_weights[tail] <- pmin(log(fit$sigma * standard + exp(cut)), 0) + top
  list(log_weights = log_weights, k = fit$k)
}

# Shape and scale of a generalized Pareto distribution from sorted excesses.
pareto_fit <- function(excess) {
  n <- length(excess)
  points <- 30 + floor(sqrt(n))
  quartile <- excess[floor(n / 4 + 0.5)]
  theta <- 1 / excess[n] + (1 - sqrt(points / (seq_len(points) - 0.5))) / (3 * quartile)
  shape <- vapply(theta, function(one) mean(log1p(-one * excess)), 0)
  profile <- n * (log(-theta / shape) - shape - 1)
  weight <- exp(profile - max(profile))
  weight <- weight / sum(weight)
  used <- weight >= 10 * .Machine$double.eps
  if (anyNA(used)) {
    return(list(k = NaN, sigma = NaN))
  }
  best <- sum(theta[used] * weight[used]) / sum(weight[used])
  k <- mean(log1p(-best * excess))
  list(k = (n * k + 5) / (n + 10), sigma = -k / best)
}
