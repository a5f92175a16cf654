# Combining rules: one inference from m (or m x r) synthetic or imputed data sets.

#' Combining rules for synthetic and imputed data sets
#'
#' Each rule takes point estimates and their variances (squared standard errors), one per data set,
#' and gives estimate, total variance T and degrees of freedom. With q the estimates, v the mean of
#' the variances, b the variance of the estimates between sets:
#'
#' * `combine_partially_synthetic()`, Reiter (2003): T = b/m + v, df = (m - 1)(1 + v/(b/m))^2.
#' * `combine_fully_synthetic()`, Raghunathan, Reiter, Rubin (2003): T = (1 + 1/m) b - v,
#'   df = (m - 1)(1 - v/((1 + 1/m) b))^2; a T that is not positive is replaced by `size_ratio` times
#'   v, with m - 1 degrees of freedom.
#' * `combine_nested()`, Reiter (2004), m imputations each synthesized r times: T = (1 + 1/m) B -
#'   w/r + v with B the variance of the nest means and w the mean within-nest variance,
#'   1/df = ((1 + 1/m) B)^2 / ((m - 1) T^2) + (w/r)^2 / (m (r - 1) T^2); a negative T is replaced by
#'   (1 + 1/m) B + v with df = (m - 1)(1 + v/((1 + 1/m) B))^2.
#' * `combine_multiple_imputation()`, Rubin (1987): T = v + (1 + 1/m) b,
#'   df = (m - 1)(1 + v/((1 + 1/m) b))^2.
#'
#' @param estimates,variances Vectors of length m or m x p matrices, one row per data set, m >= 2;
#'   for `combine_nested()` m x r matrices or m x r x p arrays, one row per imputation, r >= 2.
#' @param size_ratio Records of a synthetic set over records of the data, above 0.
#' @return An object of class `pyhybrid_combined`: a list with `estimate`, `variance`, `df`,
#'   `between`, `within`, `adjusted` (vectors of length 1 or p) and `rule`.
#' @seealso [pool()], which makes the analyses, too; its `confint()`
#' @examples
#' combine_partially_synthetic(c(1.0, 1.2, 0.9), c(0.04, 0.05, 0.04))
#' @name combining
NULL

#' @rdname combining
#' @export
combine_partially_synthetic <- function(estimates, variances) {
  parts <- between_and_within(estimates, variances, "partially synthetic")
  spread <- parts$between / parts$m
  new_combined(
    parts, "partially synthetic",
    variance = spread + parts$within,
    df = (parts$m - 1) * (1 + over(parts$within, spread))^2
  )
}

#' @rdname combining
#' @export
combine_fully_synthetic <- function(estimates, variances, size_ratio = 1) {
  parts <- between_and_within(estimates, variances, "fully synthetic")
  size_ratio <- check_positive(size_ratio, "size_ratio")
  spread <- (1 + 1 / parts$m) * parts$between
  adjusted <- spread <= parts$within
  new_combined(
    parts, "fully synthetic",
    variance = ifelse(adjusted, size_ratio * parts$within, spread - parts$within),
    df = (parts$m - 1) * ifelse(adjusted, 1, (1 - over(parts$within, spread))^2),
    adjusted = adjusted
  )
}

#' @rdname combining
#' @export
combine_multiple_imputation <- function(estimates, variances) {
  parts <- between_and_within(estimates, variances, "multiple imputation")
  spread <- (1 + 1 / parts$m) * parts$between
  new_combined(
    parts, "multiple imputation",
    variance = parts$within + spread,
    df = (parts$m - 1) * (1 + over(parts$within, spread))^2
  )
}

#' @rdname combining
#' @export
combine_nested <- function(estimates, variances) {
  check_estimates(estimates, variances, 2, "nested")
  size <- dim(estimates)
  m <- size[1]
  r <- size[2]
  by_nest <- function(x, f) matrix(apply(array(x, c(m, r, length(x) / (m * r))), c(1, 3), f), m)
  nest_means <- by_nest(estimates, mean)
  inner <- colMeans(by_nest(estimates, stats::var)) / r
  within <- colMeans(by_nest(variances, mean))
  between <- matrixStats::colVars(nest_means, useNames = FALSE)
  spread <- (1 + 1 / m) * between
  total <- spread - inner + within
  two_parts <- spread^2 / (m - 1) + inner^2 / (m * (r - 1))
  fixed_df <- (m - 1) * (1 + over(within, spread))^2
  parts <- list(m = m, estimate = colMeans(nest_means), between = between, within = within)
  new_combined(
    parts, "nested",
    variance = ifelse(total < 0, spread + within, total),
    df = ifelse(total < 0, fixed_df, over(total^2, two_parts)),
    adjusted = total < 0
  )
}

#' Combined inference: intervals, and an analysis of each set
#'
#' `pool()` makes an analysis of every synthetic set and combines coefficients and variances by one of the
#' combining rules; intervals are t intervals, estimate -+ t sqrt(T).
#'
#' @param x A release, a list of data frames, or a list of fits with `coef()` and `vcov()`; for
#'   `as.data.frame()` and `tidy()` a result of `pool()` or of a combining rule.
#' @param fit Function of a data frame that gives a model with `coef()` and `vcov()`, such as
#'   `function(set) lm(y ~ x, set)`; left out where `x` has fits.
#' @param rule `"partially_synthetic"`, `"fully_synthetic"` or `"multiple_imputation"`.
#' @param object A result of `pool()` or of one of the combining rules.
#' @param parm Names or numbers of the estimates wanted; all if left out.
#' @param level,conf.level Confidence level in (0, 1).
#' @param ... For `pool()`, of the rule; else not used.
#' @return `pool()`: as the [combining] rules. `confint()`: a matrix with a row for each estimate and two
#'   columns, lower and upper limit, named by their percentages as those of [stats::confint()].
#' @examples
#' sets <- lapply(1:3, function(l) data.frame(x = 1:6, y = c(2, 4, 5, 8, 9, 13) + l * c(-1, 1)))
#' both <- pool(sets, function(set) lm(y ~ x, set))
#' confint(both)
#' @export
pool <- function(x, fit = NULL, rule = "partially_synthetic", ...) {
  rules <- list(
    partially_synthetic = combine_partially_synthetic, fully_synthetic = combine_fully_synthetic,
    multiple_imputation = combine_multiple_imputation
  )
  check_choice(rule, "rule", names(rules))
  fits <- if (is.null(fit)) x else lapply(sets_of(x), match.fun(fit))
  if (!is.list(fits) || length(fits) < 2 || is.data.frame(fits)) {
    invalid_input("x must have at least 2 sets, or fits of them: found ", length(fits))
  }
  of_each <- function(part) {
    values <- lapply(fits, part)
    if (length(unique(lapply(values, names))) > 1) {
      invalid_input("fits must have the same coefficients in each set: they have not, as where a level ",
                    "is missing in one; give factors all their levels")
    }
    do.call(rbind, values)
  }
  rules[[rule]](of_each(stats::coef), of_each(function(one) diag(as.matrix(stats::vcov(one)))), ...)
}

#' @importFrom stats confint
#' @rdname pool
#' @export
confint.pyhybrid_combined <- function(object, parm, level = 0.95, ...) {
  level <- check_finite(level, "level")
  if (level <= 0 || level >= 1) {
    invalid_input("level must lie in (0, 1): found ", short(level))
  }
  half <- stats::qt((1 + level) / 2, object$df) * sqrt(object$variance)
  limits <- cbind(object$estimate - half, object$estimate + half)
  rows <- names(object$estimate)
  if (is.null(rows)) rows <- as.character(seq_len(nrow(limits)))
  percent <- format(50 * c(1 - level, 1 + level), trim = TRUE, digits = 3)
  dimnames(limits) <- list(rows, paste(percent, "%"))
  if (missing(parm)) {
    return(limits)
  }
  unknown <- setdiff(parm, if (is.character(parm)) rows else seq_along(rows))
  if (length(unknown) > 0) {
    invalid_input(
      "parm must hold names or numbers of estimates (", paste(rows, collapse = ", "), "): found ",
      unknown[1]
    )
  }
  limits[parm, , drop = FALSE]
}

#' @rdname pool
#' @export
coef.pyhybrid_combined <- function(object, ...) object$estimate

#' @rdname pool
#' @export
as.data.frame.pyhybrid_combined <- function(x, ...) {
  limits <- confint.pyhybrid_combined(x)
  data.frame(
    term = rownames(limits), estimate = unname(x$estimate), std.error = unname(sqrt(x$variance)),
    df = unname(x$df), conf.low = limits[, 1], conf.high = limits[, 2], row.names = NULL
  )
}

#' @rdname pool
#' @exportS3Method generics::tidy
tidy.pyhybrid_combined <- function(x, conf.level = 0.95, ...) {
  table <- as.data.frame.pyhybrid_combined(x)
  limits <- confint.pyhybrid_combined(x, level = conf.level)
  table$conf.low <- unname(limits[, 1])
  table$conf.high <- unname(limits[, 2])
  table
}

#' @export
print.pyhybrid_combined <- function(x, digits = 4, ...) {
  cat(paste0("Combined inference, rule: ", x$rule, "\n"))
  table <- cbind(
    estimate = x$estimate, se = sqrt(x$variance), df = x$df,
    between = x$between, within = x$within
  )
  rownames(table) <- names(x$estimate)
  if (is.null(rownames(table))) rownames(table) <- rep("", nrow(table))
  print(table, digits = digits)
  if (any(x$adjusted)) cat("The variance was negative and replaced in", sum(x$adjusted), "row(s)\n")
  invisible(x)
}

new_combined <- function(parts, rule, variance, df, adjusted = rep(FALSE, length(variance))) {
  structure(
    list(
      estimate = parts$estimate, variance = variance, df = df, between = parts$between,
      within = parts$within, adjusted = adjusted, rule = rule
    ),
    class = "pyhybrid_combined"
  )
}

between_and_within <- function(estimates, variances, rule) {
  check_estimates(estimates, variances, 1, rule)
  estimates <- as.matrix(estimates)
  list(
    m = nrow(estimates), estimate = colMeans(estimates),
    between = matrixStats::colVars(estimates, useNames = FALSE),
    within = unname(colMeans(as.matrix(variances)))
  )
}

# numerator / denominator, infinite where the denominator is 0.
over <- function(numerator, denominator) {
  ifelse(denominator > 0, numerator / denominator, Inf)
}

check_estimates <- function(estimates, variances, sets, rule) {
  given <- list(estimates = estimates, variances = variances)
  for (name in names(given)) {
    if (!is.numeric(given[[name]])) {
      invalid_input(name, " must be numeric: found ", class(given[[name]])[1])
    }
  }
  axes <- if (sets == 1) "length m or (m, p)" else "shape (m, r) or (m, r, p)"
  size <- if (is.null(dim(estimates))) length(estimates) else dim(estimates)
  if (!length(size) %in% c(sets, sets + 1) || show_shape(estimates) != show_shape(variances)) {
    invalid_input(
      "estimates and variances must share a ", axes, ": found ", show_shape(estimates),
      " and ", show_shape(variances)
    )
  }
  if (min(size[seq_len(sets)]) < 2) {
    invalid_input(
      "the rule '", rule, "' needs at least 2 sets along ", sub("shape ", "", axes), ": found ",
      if (length(size) > 1) "shape ", show_shape(estimates)
    )
  }
  if (!all(is.finite(estimates)) || !all(is.finite(variances)) || any(variances < 0)) {
    invalid_input("estimates must be finite and variances finite and >= 0")
  }
}
