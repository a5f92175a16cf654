# What one released draw tells about a record, from full refits without it: the Python package's rule.

refit_margin <- 1.25 # on the loss of refits, for records that were not left out
most_alone <- 0.3 # share of the information along some direction

#' Privacy loss of a draw from a refit without a record
#'
#' When record i leaves, its own term goes, and the weights of all others change with it:
#' \eqn{T_i(\theta) = \sum_j (\alpha_j - \alpha_j^{(-i)}) f_j(\theta)}. `refit_loss()` is what a draw,
#' with the record or without it, loses more than with probability `delta` at most: the quantile of
#' T - c in either direction, with \eqn{e^c} the ratio of both evidences from draws of both posteriors,
#' by mean, deviation and skewness. [synthesize()] charges 1.25 times the largest of ten such losses,
#' or the papers' \eqn{2\Delta} if that is more. `refit_candidates()` names the records that are left
#' out; `sole_informants()` those that nearly alone inform a coefficient, whose loss no refit tells.
#'
#' @param change,change_without T at draws of the posterior with the record, and at draws of the refit
#'   without it; nats.
#' @param delta In (0, 1).
#' @param deviations,sizes By record: deviation of its weighted term, and its size under weights of 1.
#' @param k Number of records, even: half by each.
#' @param X Design matrix, n by K.
#' @return A number, nats; positions of records; for `sole_informants()` a data frame of `record`,
#'   `column` (its place in X) and `share` of the information, above 0.3.
#' @references Bennett (1976), Journal of Computational Physics 22, for c. Savitsky, Williams, Hu (2022),
#'   JMLR 23:1-37.
#' @examples
#' z <- stats::qnorm(stats::ppoints(4000))
#' refit_loss(0.5 * (z + 0.5), 0.5 * z) # of N(.5, 1) and N(0, 1)
#' @export
refit_loss <- function(change, change_without, delta = 1e-6) {
  delta <- check_delta(delta)
  given <- list(change = change, change_without = change_without)
  for (name in names(given)) {
    values <- check_vector(given[[name]], name)
    if (length(values) < 2 || anyNA(values)) {
      invalid_input(name, " must have 2 draws or more, none of them NaN")
    }
  }
  if (!all(is.finite(c(change, change_without)))) {
    return(Inf)
  }
  ratio <- log_evidence_ratio(change, change_without)
  max(quantile_of_loss(change - ratio, delta), quantile_of_loss(ratio - change_without, delta), 0)
}

# c at which Bennett's acceptance ratios of both posteriors are equal.
log_evidence_ratio <- function(change, change_without) {
  excess <- function(c) mean(stats::plogis(c - change)) - mean(stats::plogis(change_without - c))
  low <- min(change, change_without) - 1
  high <- max(change, change_without) + 1
  while (excess(low) > 0) low <- low - (high - low)
  while (excess(high) < 0) high <- high + (high - low)
  stats::uniroot(excess, c(low, high), tol = 1e-14, maxiter = 10000)$root
}

# What a share of delta exceeds, by Cornish and Fisher's first correction for a longer upper tail.
quantile_of_loss <- function(loss, delta) {
  middle <- mean(loss)
  deviation <- stats::sd(loss)
  if (deviation == 0) {
    return(middle)
  }
  skewness <- mean((loss - middle)^3) / deviation^3
  z <- -stats::qnorm(delta)
  middle + deviation * (z + (z^2 - 1) * min(max(skewness, 0), 3) / 6)
}

#' @rdname refit_loss
#' @export
refit_candidates <- function(deviations, sizes, k = 10) {
  deviations <- check_vector(deviations, "deviations")
  sizes <- check_vector(sizes, "sizes", length(deviations))
  half <- check_refits(k) / 2
  chosen <- integer(0)
  alike <- paste(match(deviations, deviations), match(sizes, sizes))
  for (values in list(deviations, sizes)) {
    taken <- 0
    for (record in order(-values)) {
      if (taken == half) break
      if (!record %in% chosen && alike[record] %in% alike[chosen]) next
      if (!record %in% chosen) chosen <- c(chosen, record)
      taken <- taken + 1
    }
  }
  chosen
}

check_refits <- function(refits) {
  if (check_count(refits, "refits", at_least = 0) %% 2 != 0) {
    invalid_input("refits must be even, half of them of each kind: found ", refits)
  }
  refits
}

#' @rdname refit_loss
#' @export
sole_informants <- function(X) {
  if (!is.numeric(X) || length(dim(X)) != 2 || !all(is.finite(X))) {
    invalid_input("X must be a matrix of finite numbers, (n, K): found ", show_shape(X))
  }
  X <- unname(X)
  size <- sqrt(colSums(X^2))
  scaled <- X / rep(ifelse(size > 0, size, 1), each = nrow(X))
  parts <- svd(scaled, nv = 0)
  basis <- parts$u[, parts$d > 1e-10 * parts$d[1], drop = FALSE]
  share <- rowSums(basis^2)
  record <- which(share > most_alone + 1e-10)
  data.frame(
    record = record, column = max.col(scaled[record, , drop = FALSE]^2, "first"),
    share = share[record]
  )
}
