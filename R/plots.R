# Figures, by ggplot2.

#' Figures of weights, bounds and synthetic data
#'
#' `plot_weights()`: violins of record weights of several mechanisms. `plot_bounds()`: bound against weight,
#' a point for each record, before and after re-weighting. `plot_ecdf()`: distribution functions of the
#' synthetic sets, and of the data where they are given. `plot_estimates()`: estimates with intervals, data
#' beside synthetic. All but `plot_ecdf()` without data are CONFIDENTIAL.
#'
#' @param ... Vectors of weights, results of [lipschitz_bounds()] or releases, named by mechanism.
#' @param before,after Results of [lipschitz_bounds()]; a release alone is shown before and after its
#'   re-weighting.
#' @param synthetic A release, a data frame or a list of data frames.
#' @param data The data, or `NULL`.
#' @param column Of numbers; the synthesized one of a release, else the first, if `NULL`.
#' @param estimates A result of [utility_estimates()] or [compare()].
#' @param x A result of [lipschitz_bounds()].
#' @return A figure of \pkg{ggplot2}.
#' @references Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms
#'   under differential privacy, figures 2, 3 and 6.
#' @examples
#' log_lik <- matrix(-stats::qexp(stats::ppoints(200)), 4)
#' alpha <- lipschitz_weights(log_lik)
#' before <- lipschitz_bounds(log_lik, alpha)
#' after <- lipschitz_bounds(log_lik, reweight(alpha, before))
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   plot_weights(LW = before, "LW re-weighted" = after)
#'   plot_bounds(before, after)
#' }
#' @name plots
NULL

utils::globalVariables(c(
  "alpha", "bound", "mechanism", "when", "value", "height", "source", "group", "estimate", "lower",
  "upper", "statistic", "column"
))

data_color <- "#1b4965"
synthetic_color <- "#d1495b"

figure <- function(...) {
  require_package("ggplot2", "a figure")
  ggplot2::ggplot(...) + ggplot2::theme_minimal(base_size = 12)
}

weights_of <- function(x) {
  if (inherits(x, "pyhybrid_release")) x <- x$confidential$alpha
  if (inherits(x, "pyhybrid_lipschitz_bounds")) x <- x$alpha
  if (!is.numeric(x)) invalid_input("weights must be numbers, bounds or a release: found ", class(x)[1])
  check_alpha(x, length(x))
}

#' @rdname plots
#' @export
plot_weights <- function(...) {
  given <- list(...)
  if (length(given) == 0) invalid_input("weights must be given, named by mechanism: found none")
  if (is.null(names(given))) names(given) <- if (length(given) == 1) "weights" else seq_along(given)
  weights <- lapply(given, weights_of)
  table <- data.frame(
    mechanism = factor(rep(names(weights), lengths(weights)), names(weights)),
    alpha = unlist(weights, use.names = FALSE)
  )
  figure(table, ggplot2::aes(mechanism, alpha)) +
    ggplot2::geom_violin(fill = "#bee9e8", color = NA, scale = "width", trim = TRUE) +
    ggplot2::geom_boxplot(width = 0.08, outlier.size = 0.6, color = data_color) +
    ggplot2::coord_cartesian(ylim = c(0, 1)) +
    ggplot2::labs(x = NULL, y = "record weight")
}

#' @rdname plots
#' @export
plot_bounds <- function(before, after = NULL) {
  if (inherits(before, "pyhybrid_release")) {
    own <- before$confidential
    after <- if (!is.null(own$before)) own$bounds
    before <- if (is.null(own$before)) own$bounds else own$before
  }
  given <- Filter(Negate(is.null), list(before = before, after = after))
  if (!all(vapply(given, inherits, TRUE, "pyhybrid_lipschitz_bounds"))) {
    invalid_input("before and after must be results of lipschitz_bounds(), or a release")
  }
  parts <- lapply(names(given), function(name) cbind(when = name, as.data.frame(given[[name]])))
  table <- do.call(rbind, parts)
  table$when <- factor(table$when, names(given))
  shown <- figure(table, ggplot2::aes(alpha, bound)) +
    ggplot2::geom_point(color = data_color, alpha = 0.4, size = 1.2) +
    ggplot2::scale_x_continuous(breaks = c(0, 0.5, 1)) +
    ggplot2::coord_cartesian(xlim = c(0, 1), ylim = c(0, max(table$bound))) +
    ggplot2::labs(x = "record weight", y = "bound by record (nats)")
  if (length(given) > 1) shown + ggplot2::facet_wrap(ggplot2::vars(when)) else shown
}

#' @rdname plots
#' @export
plot.pyhybrid_lipschitz_bounds <- function(x, ...) plot_bounds(x)

#' @rdname plots
#' @export
plot_ecdf <- function(synthetic, data = NULL, column = NULL) {
  sets <- sets_of(synthetic)
  if (is.null(column)) {
    column <- if (inherits(synthetic, "pyhybrid_release")) {
      synthetic$outcome[1]
    } else {
      Find(function(name) is_number(sets[[1]][[name]]), names(sets[[1]]))
    }
  }
  if (is.null(column)) invalid_input("column must hold numbers: the sets have none")
  tables <- compared_tables(sets, if (is.null(data)) sets[[1]] else data, column, numbers = TRUE)
  heights <- function(values, source, group) {
    values <- sort(present_values(values, column))
    data.frame(value = values, height = seq_along(values) / length(values), source = source, group = group)
  }
  parts <- lapply(seq_along(sets), function(l) heights(sets[[l]][[column]], "synthetic", l))
  if (!is.null(data)) { # drawn last, on top of the sets
    parts <- c(parts, list(heights(tables$data[[column]], "data", length(sets) + 1)))
  }
  figure(do.call(rbind, parts), ggplot2::aes(value, height, color = source, group = group)) +
    ggplot2::geom_step(linewidth = 0.6) +
    ggplot2::scale_color_manual(values = c(data = data_color, synthetic = synthetic_color)) +
    ggplot2::labs(x = column, y = "distribution function", color = NULL)
}

#' @rdname plots
#' @export
plot_estimates <- function(estimates) {
  if (inherits(estimates, "pyhybrid_comparison")) estimates <- estimates$estimates
  wanted <- c("column", "statistic", "source", "estimate", "lower", "upper")
  if (!is.data.frame(estimates) || !all(wanted %in% names(estimates))) {
    invalid_input("estimates must be a result of utility_estimates() or compare() of numbers")
  }
  estimates$statistic <- factor(estimates$statistic, rev(unique(estimates$statistic)))
  estimates$source <- factor(estimates$source, c("synthetic", "data")) # from below
  apart <- ggplot2::position_dodge(width = 0.5)
  figure(estimates, ggplot2::aes(estimate, statistic, color = source)) +
    ggplot2::geom_errorbarh(ggplot2::aes(xmin = lower, xmax = upper), height = 0.25, position = apart) +
    ggplot2::geom_point(position = apart, size = 2) +
    ggplot2::facet_wrap(ggplot2::vars(column), scales = "free_x") +
    ggplot2::scale_color_manual(values = c(data = data_color, synthetic = synthetic_color),
                                breaks = c("data", "synthetic")) +
    ggplot2::labs(x = NULL, y = NULL, color = NULL)
}
