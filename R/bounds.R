# Lipschitz bounds of single records and of a database.

#' Lipschitz bounds from a log-likelihood matrix
#'
#' By-record bounds \eqn{D_i = \max_s |\alpha_i f_{si}|} and the overall bound
#' \eqn{\Delta = \max_i D_i} of a weighted posterior, where \eqn{f_{si} = \log p(x_i | \theta_s)}.
#' The privacy cost of one released draw is \eqn{\epsilon = 2\Delta}. `lipschitz_bounds_loo()` is
#' the leave-one-out form in which the supplement of Hu, Savitsky and Williams writes the bound,
#' \eqn{|\sum_j \alpha_j f_{sj} - \sum_{j \ne i} \alpha_j f_{sj}|}, as a loop over draws and
#' records; it costs S n^2 and is kept as the reference that `lipschitz_bounds()` is tested by.
#'
#' @param log_lik Matrix, S draws in rows and n records in columns, or whatever [as_loglik()] takes
#'   (an array of \pkg{loo}, draws of \pkg{posterior}, a fit of rstan, cmdstanr or brms): the UNWEIGHTED
#'   log-likelihood in nats, at draws from the posterior weighted by `alpha`. `NaN`, `NA` and infinities
#'   mean an unbounded record (`lipschitz_bounds_loo()` refuses them: they spread over all sums of a draw).
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @param draw_quantile q in (0, 1\]. With \eqn{T_s = \max_i |\alpha_i f_{si}|} and
#'   `L = quantile(T, q, type = 7)`, draws with `T > L` are dropped whole (nothing is clipped) and
#'   L is the overall bound. Below 1 the bound is a statement with a failure probability. A record
#'   whose log-likelihood is not finite stays unbounded, also where its draw is dropped.
#' @return An object of class `pyhybrid_lipschitz_bounds`: a list with `by_record` (vector of length
#'   n, with the names of the columns), `overall`, `kept_draws` (logical vector of length S),
#'   `draw_quantile` and `alpha`. All but `draw_quantile` are functions of the confidential data. It has
#'   methods for `print`, `plot` ([plot_bounds()]) and `as.data.frame`, and can be given to
#'   [reweight()], [truncate_weights()], [weights_from_lipschitz()] and [epsilon_of_bound()].
#' @references Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 2. Hu, Savitsky, Williams,
#'   Maximizing utility for vector-weighted pseudo posterior mechanisms under differential privacy,
#'   alg. 1 and supplement.
#' @examples
#' log_lik <- rbind(c(-1, -4), c(-2, -3))
#' lipschitz_bounds(log_lik, alpha = c(1, 0.5))
#' @export
lipschitz_bounds <- function(log_lik, alpha = NULL, draw_quantile = 1) {
  log_lik <- check_log_lik(log_lik)
  alpha <- check_alpha(alpha, ncol(log_lik))
  draw_quantile <- check_fraction(draw_quantile, "draw_quantile")
  if (draw_quantile == 1) {
    by_record <- weighted_bound(largest_abs(log_lik), alpha)
    return(new_lipschitz_bounds(by_record, max(by_record), rep(TRUE, nrow(log_lik)), 1, alpha))
  }
  row_max <- largest_weighted_by_draw(log_lik, alpha)
  overall <- stats::quantile(row_max, draw_quantile, names = FALSE, type = 7)
  kept <- row_max <= overall
  largest <- largest_abs(log_lik[kept, , drop = FALSE])
  largest[!is.finite(largest_abs(log_lik))] <- Inf
  by_record <- weighted_bound(largest, alpha)
  if (any(is.infinite(by_record))) overall <- Inf
  new_lipschitz_bounds(by_record, overall, kept, draw_quantile, alpha)
}

#' @rdname lipschitz_bounds
#' @export
lipschitz_bounds_loo <- function(log_lik, alpha = NULL, draw_quantile = 1) {
  log_lik <- check_log_lik(log_lik)
  alpha <- check_alpha(alpha, ncol(log_lik))
  draw_quantile <- check_fraction(draw_quantile, "draw_quantile")
  wrong <- which(!is.finite(log_lik), arr.ind = TRUE)
  if (nrow(wrong) > 0) {
    invalid_input(
      "log_lik must be finite in the leave-one-out form: record ", wrong[1, 2], ", draw ",
      wrong[1, 1], " is ", short(log_lik[wrong[1, , drop = FALSE]]), "; use lipschitz_bounds()"
    )
  }
  ratio <- matrix(0, nrow(log_lik), ncol(log_lik))
  for (s in seq_len(nrow(log_lik))) {
    weighted <- alpha * log_lik[s, ]
    for (i in seq_len(ncol(log_lik))) {
      ratio[s, i] <- abs(sum(weighted) - sum(weighted[-i]))
    }
  }
  row_max <- apply(ratio, 1, max)
  overall <- stats::quantile(row_max, draw_quantile, names = FALSE, type = 7)
  kept <- row_max <= overall
  by_record <- apply(ratio[kept, , drop = FALSE], 2, max)
  new_lipschitz_bounds(by_record, overall, kept, draw_quantile, alpha)
}

new_lipschitz_bounds <- function(by_record, overall, kept_draws, draw_quantile, alpha) {
  structure(
    list(
      by_record = by_record, overall = overall,
      kept_draws = kept_draws, draw_quantile = draw_quantile, alpha = alpha
    ),
    class = "pyhybrid_lipschitz_bounds"
  )
}

#' Slack of a set of by-record bounds
#'
#' Mean by-record bound over the overall bound; 1 means that no record has slack.
#' @param bounds A result of [lipschitz_bounds()].
#' @return A number; 1 if the overall bound is 0.
#' @examples
#' efficiency(lipschitz_bounds(rbind(c(-1, -4))))
#' @export
efficiency <- function(bounds) {
  if (!inherits(bounds, "pyhybrid_lipschitz_bounds")) {
    invalid_input("bounds must be a result of lipschitz_bounds(): found ", class(bounds)[1])
  }
  if (bounds$overall > 0) mean(bounds$by_record) / bounds$overall else 1
}

#' @export
print.pyhybrid_lipschitz_bounds <- function(x, digits = 4, ...) {
  kept <- sum(x$kept_draws)
  cat(paste0(
    "Lipschitz bounds (nats) of ", length(x$by_record), " records, confidential\n",
    "  overall bound:  ", format(x$overall, digits = digits),
    "   (epsilon of one draw: ", format(2 * x$overall, digits = digits), ")\n",
    "  by record:      ", format(min(x$by_record), digits = digits), " to ",
    format(max(x$by_record), digits = digits),
    ", efficiency ", format(efficiency(x), digits = digits), "\n",
    "  draws kept:     ", kept, " of ", length(x$kept_draws),
    if (x$draw_quantile < 1) paste0("   (draw_quantile ", format(x$draw_quantile), ")"), "\n"
  ))
  invisible(x)
}

#' @export
as.data.frame.pyhybrid_lipschitz_bounds <- function(x, ...) {
  data.frame(
    record = if (is.null(names(x$by_record))) seq_along(x$by_record) else names(x$by_record),
    alpha = x$alpha, bound = unname(x$by_record)
  )
}

# Bounds by record of a function that takes them as numbers or as a result of lipschitz_bounds().
bounds_by_record <- function(x) if (inherits(x, "pyhybrid_lipschitz_bounds")) x$by_record else x

# Largest absolute value of each column, with its name; a missing value counts as infinite.
largest_abs <- function(log_lik) {
  range <- matrixStats::colRanges(log_lik, useNames = FALSE)
  largest <- pmax(range[, 2], -range[, 1])
  largest[is.na(largest)] <- Inf
  stats::setNames(largest, colnames(log_lik))
}

# alpha_i f_i, and 0 where alpha_i = 0 even if the record is unbounded.
weighted_bound <- function(f, alpha) stats::setNames(ifelse(alpha > 0, alpha * f, 0), names(f))

# T_s = max_i |alpha_i f_si|; records of weight 0 do not count.
largest_weighted_by_draw <- function(log_lik, alpha) {
  used <- alpha > 0
  if (!any(used)) {
    return(rep(0, nrow(log_lik)))
  }
  weighted <- abs(log_lik[, used, drop = FALSE]) * rep(alpha[used], each = nrow(log_lik))
  largest <- matrixStats::rowMaxs(weighted, useNames = FALSE)
  largest[is.na(largest)] <- Inf
  largest
}
