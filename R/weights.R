# Record weights alpha_i in [0, 1] from disclosure risk: one function per weight map of the papers.

#' Lipschitz weights
#'
#' Records with large log-likelihoods are down-weighted. With \eqn{f_i = \max_s |f_{si}|} and a map
#' m that falls from 1 (no risk) to 0, \eqn{\alpha_i = clip(scale \cdot m(f_i) + shift, 0, 1)}.
#'
#' @details
#' The maps: `linear` 1 - r with r = (f - min f)/(max f - min f), r = 0 if all f are equal;
#' `reciprocal` 1/(f + 1); `threshold` 1 if f < `threshold`, else 0; `logistic` 1 - r with
#' r = 2/(1 + exp(-f/2)) - 1; `softmax` 1 - r with r = 1/(1 + exp(-1.69897 (f - mean f)/sd f)),
#' r = 1/2 if all f are equal. Minimum, maximum, mean and sd are over the records with finite f.
#'
#' @param log_lik As in [lipschitz_bounds()], at draws from the UNWEIGHTED posterior.
#' @param scale,shift c and g of Savitsky, Williams and Hu. With the defaults the riskiest record
#'   gets exactly 0.
#' @param transform `"linear"`, `"reciprocal"`, `"threshold"`, `"logistic"` or `"softmax"`.
#' @param draw_quantile As in [lipschitz_bounds()]: draws above this quantile are not used. The
#'   printed script's weights are of all draws, whatever its `thresh`: leave it out for these.
#' @param threshold f* in nats, above 0; required by, and only by, `transform = "threshold"`.
#' @param risk What f_i is: `"size"`, the papers'; or how far it moves, `"range"`,
#'   max_s f_si - min_s f_si, or `"deviation"`, the standard deviation of f_si over s.
#' @param lipschitz Unweighted by-record bounds f_i >= 0 in nats, a vector of length n (infinity
#'   allowed), or a result of [lipschitz_bounds()].
#' @return Weights in \[0, 1\], a vector of length n, with the names of the records; exactly 0 where
#'   the record is unbounded.
#'   Confidential.
#' @references Savitsky, Williams, Hu (2022), sec. 3 and assumption 2.
#' @examples
#' lipschitz_weights(rbind(c(-1, -2, -3)))
#' weights_from_lipschitz(c(1, 2, Inf), transform = "reciprocal")
#' @export
lipschitz_weights <- function(log_lik, scale = 1, shift = 0, transform = "linear",
                              draw_quantile = 1, threshold = NULL, risk = "size") {
  check_choice(risk, "risk", names(risks))
  bounds <- lipschitz_bounds(log_lik, draw_quantile = draw_quantile)
  f <- bounds$by_record
  bounded <- is.finite(f)
  if (risk != "size" && any(bounded)) {
    f[bounded] <- risks[[risk]](log_lik[bounds$kept_draws, bounded, drop = FALSE])
  }
  weights_from_lipschitz(f, scale, shift, transform, threshold)
}

risks <- list(
  size = function(log_lik) largest_abs(log_lik),
  range = function(log_lik) {
    ends <- matrixStats::colRanges(log_lik, useNames = FALSE)
    ends[, 2] - ends[, 1]
  },
  deviation = function(log_lik) {
    if (nrow(log_lik) == 1) rep(0, ncol(log_lik)) else matrixStats::colSds(log_lik, useNames = FALSE)
  }
)

#' @rdname lipschitz_weights
#' @export
weights_from_lipschitz <- function(lipschitz, scale = 1, shift = 0, transform = "linear",
                                   threshold = NULL) {
  lipschitz <- bounds_by_record(lipschitz)
  f <- check_nonnegative_vector(lipschitz, "lipschitz")
  scale <- check_finite(scale, "scale")
  shift <- check_finite(shift, "shift")
  check_choice(transform, "transform", names(transforms))
  if ((transform == "threshold") != !is.null(threshold)) {
    invalid_input("threshold must be given with transform='threshold', and only then")
  }
  if (!is.null(threshold)) threshold <- check_positive(threshold, "threshold")
  finite <- is.finite(f)
  alpha <- stats::setNames(rep(0, length(f)), names(lipschitz))
  if (any(finite)) {
    alpha[finite] <- clip(scale * transforms[[transform]](f[finite], threshold) + shift, 0, 1)
  }
  alpha
}

clip <- function(x, lower, upper) pmin(pmax(x, lower), upper)

transforms <- list(
  linear = function(f, threshold) {
    if (max(f) > min(f)) 1 - (f - min(f)) / (max(f) - min(f)) else rep(1, length(f))
  },
  reciprocal = function(f, threshold) 1 / (f + 1),
  threshold = function(f, threshold) as.double(f < threshold),
  logistic = function(f, threshold) 1 - (2 / (1 + exp(-f / 2)) - 1),
  softmax = function(f, threshold) {
    standard <- if (max(f) > min(f)) (f - mean(f)) / stats::sd(f) else rep(0, length(f))
    1 - 1 / (1 + exp(-1.69897 * standard))
  }
)

#' Count weights
#'
#' clip(scale (1 - risk) + shift, 0, 1), with the risk of [radius_risk()] or [pairwise_risk()].
#' @param risk Risks in \[0, 1\], a vector of length n.
#' @param scale,shift c and g, finite.
#' @return Weights in \[0, 1\], a vector of length n. Confidential.
#' @references Hu, Savitsky, Williams (2022), sec. 2 and 3.
#' @examples
#' count_weights(radius_risk(c(10, 11, 12, 40)))
#' @export
count_weights <- function(risk, scale = 1, shift = 0) {
  risk <- check_nonnegative_vector(risk, "risk")
  if (max(risk) > 1) {
    where <- which.max(risk)
    invalid_input("risk must lie in [0, 1]: record ", where, " is above")
  }
  scale <- check_finite(scale, "scale")
  shift <- check_finite(shift, "shift")
  clip(scale * (1 - risk) + shift, 0, 1)
}

#' Scalar weights: the exponential mechanism under a log-likelihood utility
#'
#' One weight for all records, min(1, target / unweighted).
#' @param n Number of records.
#' @param target_bound,unweighted_bound Overall Lipschitz bounds in nats, above 0: the one wanted,
#'   and that of the unweighted fit.
#' @return A vector of length n.
#' @references Savitsky, Williams, Hu (2022), sec. 3.1; McSherry, Talwar (2007).
#' @examples
#' scalar_weights(3, target_bound = 2.5, unweighted_bound = 10)
#' @export
scalar_weights <- function(n, target_bound, unweighted_bound) {
  n <- check_count(n, "n")
  target_bound <- check_positive(target_bound, "target_bound")
  unweighted_bound <- check_positive(unweighted_bound, "unweighted_bound")
  rep(min(1, target_bound / unweighted_bound), n)
}

#' Truncated weights (Weighted-M, Weighted-e)
#'
#' Sets alpha_i to 0 where alpha_i f_i > cap.
#' @param alpha Weights in \[0, 1\], a vector of length n.
#' @param lipschitz f_i of the UNWEIGHTED fit in nats, a vector of length n (infinity allowed), or its
#'   [lipschitz_bounds()].
#' @param cap M in nats, above 0; epsilon / 2 for one released draw.
#' @return Weights, a vector of length n. Confidential.
#' @references Savitsky, Williams, Hu (2022), sec. 4.4; Hu, Williams, Savitsky (2025), sec. 2.2.
#' @examples
#' truncate_weights(c(1, 0.5), c(3, 10), cap = 3.5)
#' @export
truncate_weights <- function(alpha, lipschitz, cap) {
  if (missing(cap)) invalid_input("cap must be given: M in nats, above 0")
  lipschitz <- bounds_by_record(lipschitz)
  f <- check_nonnegative_vector(lipschitz, "lipschitz")
  alpha <- check_alpha(alpha, length(f))
  cap <- check_positive(cap, "cap")
  stats::setNames(ifelse(weighted_bound(f, alpha) > cap, 0, alpha), names(lipschitz))
}

#' One re-weighting step
#'
#' clip(k alpha_i D / D_i, 0, 1): raises the weight of records whose by-record bound leaves slack
#' below the overall bound. D_i is per RECORD, not per draw. A weight of 0 stays 0; a weighted
#' record whose bound is 0 goes to 1. Refit with the result.
#' @param alpha Weights of the fit, in \[0, 1\], a vector of length n.
#' @param by_record Bounds D_i of the alpha-weighted fit in nats, finite, a vector of length n, or its
#'   [lipschitz_bounds()].
#' @param k In (0, 1\]; holds the refitted bound down.
#' @param bound Overall bound of the same fit; the largest `by_record` if `NULL`.
#' @return Weights, a vector of length n. Confidential.
#' @references Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior
#'   mechanisms, eq. 2.1 and alg. 1.
#' @examples
#' reweight(c(1, 0.5, 0), c(2, 4, 0), k = 0.95)
#' @export
reweight <- function(alpha, by_record, k = 0.95, bound = NULL) {
  labels <- names(bounds_by_record(by_record))
  by_record <- check_nonnegative_vector(bounds_by_record(by_record), "by_record")
  alpha <- check_alpha(alpha, length(by_record))
  k <- check_fraction(k, "k")
  unbounded <- which(is.infinite(by_record))
  if (length(unbounded) > 0) {
    invalid_input(
      "by_record must be finite: record ", unbounded[1], " has no bound; give it weight 0"
    )
  }
  bound <- if (is.null(bound)) max(by_record) else check_positive(bound, "bound")
  raised <- ifelse(by_record > 0, k * alpha * bound / by_record, 1)
  stats::setNames(ifelse(alpha > 0, clip(raised, 0, 1), 0), labels)
}

#' Censored weighted log-likelihood
#'
#' max(-cap, min(cap, alpha_i f_si)). A weight of 0 gives 0; an infinite f_si gives -cap or cap; a
#' missing one (a density that cannot be evaluated) gives -cap, as a likelihood of 0 would.
#' @param log_lik Matrix, S draws by n records, unweighted, in nats.
#' @param alpha Weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @param cap M in nats, above 0: the strict Lipschitz bound.
#' @return A matrix with the dimensions of `log_lik`.
#' @references Hu, Williams, Savitsky (2025), sec. 3.
#' @examples
#' censor(rbind(c(-1, -9)), cap = 2.5)
#' @export
censor <- function(log_lik, alpha = NULL, cap) {
  if (missing(cap)) invalid_input("cap must be given: M in nats, above 0")
  log_lik <- check_log_lik(log_lik)
  alpha <- check_alpha(alpha, ncol(log_lik))
  cap <- check_positive(cap, "cap")
  weighted <- log_lik * rep(alpha, each = nrow(log_lik))
  weighted[is.na(weighted)] <- -Inf
  weighted[, alpha == 0] <- 0
  weighted[] <- clip(weighted, -cap, cap)
  weighted
}
