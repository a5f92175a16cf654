# Utility of synthetic tables, beside the data: estimates, distribution functions, propensity scores.

#' Utility of synthetic data
#'
#' `utility_estimates()`: mean, median and percentiles of columns of numbers with 95 % intervals by
#' resampling, of the data and of the synthetic sets. Of m sets the resampling distributions are combined
#' by their Wasserstein barycenter: the b-th smallest resampled statistics are averaged over the sets.
#' `utility_ecdf()`: the largest absolute and the mean squared difference of both empirical distribution
#' functions over the pooled values, averaged over the sets. `utility_pmse()`: how well a logistic
#' regression on main effects tells synthetic records from the data, the mean of \eqn{(p_i - c)^2} with c
#' the share of synthetic records, against what it would be if both were samples of one population.
#'
#' @details
#' The null of pMSE is `"population"`, mean c (1 - c) (k - 1) / N for k columns of the design, or, where
#' a set has the rows of the data with some column unchanged, `"paired"`: row i of both may change places.
#' Its `ratio` is near 1 for a synthesis that keeps what the regression sees. Missing values are left out
#' of estimates and distribution functions; in the regression they are a level, or an indicator. Sets may
#' have been made elsewhere.
#'
#' @param synthetic A release of [synthesize()], a data frame or a list of data frames.
#' @param data The data, a data frame. Confidential, and so is every result.
#' @param columns Columns compared; all that both have (for the first two functions: of numbers) if
#'   `NULL`.
#' @param statistics `"mean"`, `"median"`, or q and a percentage such as `"q15"`; quantiles of type 7.
#' @param n_resamples At least 100.
#' @param level Of the intervals, in (0, 1).
#' @param seed Of the resamples; the system's entropy if `NULL`.
#' @param null `"auto"`, `"population"` or `"paired"`.
#' @return Data frames: `column`, `statistic`, `source` ("data" or "synthetic"), `estimate`, `lower`,
#'   `upper`; `column`, `max_ecdf`, `avg_ecdf`; a row for each set with `pmse`, `null_mean`, `null_sd`,
#'   `ratio`, `standardised`, `null`.
#' @references Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 5.2. Hu, Williams, Savitsky (2025),
#'   Statistica Sinica 35:563-584, sec. 4.3. Snoke, Raab, Nowok, Dibben, Slavkovic (2018), JRSS A 181.
#' @examples
#' data <- data.frame(visits = c(0, 2, 1, 4, 7, 3), sex = c("f", "m", "m", "f", "f", "m"))
#' set <- transform(data, visits = c(1, 2, 0, 5, 6, 3))
#' utility_estimates(set, data, seed = 1)
#' utility_ecdf(set, data)
#' utility_pmse(set, data)
#' @name utility
NULL

#' @rdname utility
#' @export
utility_estimates <- function(synthetic, data, columns = NULL,
                              statistics = c("mean", "median", "q15", "q90"), n_resamples = 1000,
                              level = 0.95, seed = NULL) {
  tables <- compared_tables(synthetic, data, columns, numbers = TRUE)
  probabilities <- vapply(statistics, probability_of, 0)
  check_count(n_resamples, "n_resamples", at_least = 100)
  level <- check_finite(level, "level")
  if (level <= 0 || level >= 1) invalid_input("level must lie in (0, 1): found ", short(level))
  if (!is.null(seed)) check_count(seed, "seed", at_least = 0)
  sources <- list(data = list(tables$data), synthetic = tables$sets)
  with_randomness(seed, do.call(rbind, lapply(tables$columns, function(column) {
    do.call(rbind, lapply(names(sources), function(source) {
      samples <- lapply(sources[[source]], function(table) present_values(table[[column]], column))
      rows <- lapply(seq_along(statistics), function(k) {
        estimate_of(samples, probabilities[k], n_resamples, level)
      })
      data.frame(column = column, statistic = statistics, source = source, do.call(rbind, rows))
    }))
  })))
}

# NA for the mean.
probability_of <- function(name) {
  if (name %in% c("mean", "median")) {
    return(if (name == "mean") NA_real_ else 0.5)
  }
  percent <- suppressWarnings(as.numeric(sub("^q", "", name)))
  if (!startsWith(name, "q") || is.na(percent) || percent <= 0 || percent >= 100) {
    invalid_input(
      "a statistic must be mean, median, or q and a percentage such as q15: found '", name, "'"
    )
  }
  percent / 100
}

estimate_of <- function(samples, p, n_resamples, level) {
  estimate <- mean(vapply(samples, statistic_of, 0, p))
  sorted <- vapply(samples, function(x) sort(resampled(x, p, n_resamples)), numeric(n_resamples))
  ends <- stats::quantile(rowMeans(sorted), c(1 - level, 1 + level) / 2, names = FALSE, type = 7)
  data.frame(estimate = estimate, lower = min(ends[1], estimate), upper = max(ends[2], estimate))
}

statistic_of <- function(x, p) {
  if (is.na(p)) mean(x) else stats::quantile(x, p, names = FALSE, type = 7)
}

# Statistics of resamples with replacement. Order statistics of a resample are values at those of n
# uniform numbers, which are beta variables: quantiles cost B, whatever n is.
resampled <- function(x, p, n_resamples) {
  n <- length(x)
  if (is.na(p)) {
    return(vapply(seq_len(n_resamples), function(b) mean(x[sample.int(n, n, TRUE)]), 0))
  }
  ordered <- sort(x)
  position <- (n - 1) * p
  rank <- floor(position) + 1
  at <- function(uniform) ordered[pmin(floor(uniform * n) + 1, n)]
  uniform <- stats::rbeta(n_resamples, rank, n - rank + 1)
  if (rank == n) {
    return(at(uniform))
  }
  above <- uniform + (1 - uniform) * stats::rbeta(n_resamples, 1, n - rank)
  at(uniform) + (position - floor(position)) * (at(above) - at(uniform))
}

#' @rdname utility
#' @export
utility_ecdf <- function(synthetic, data, columns = NULL) {
  tables <- compared_tables(synthetic, data, columns, numbers = TRUE)
  do.call(rbind, lapply(tables$columns, function(column) {
    truth <- present_values(tables$data[[column]], column)
    gaps <- vapply(tables$sets, function(table) {
      differences <- ecdf_differences(truth, present_values(table[[column]], column))
      c(max(abs(differences)), mean(differences^2))
    }, numeric(2))
    data.frame(column = column, max_ecdf = mean(gaps[1, ]), avg_ecdf = mean(gaps[2, ]))
  }))
}

# F_data - F_syn at every pooled value.
ecdf_differences <- function(data, synthetic) {
  pooled <- c(data, synthetic)
  stats::ecdf(data)(pooled) - stats::ecdf(synthetic)(pooled)
}

#' @rdname utility
#' @export
utility_pmse <- function(synthetic, data, columns = NULL, null = "auto") {
  tables <- compared_tables(synthetic, data, columns)
  check_choice(null, "null", c("auto", "population", "paired"))
  rows <- lapply(seq_along(tables$sets), function(place) {
    set <- tables$sets[[place]]
    of_set <- if (null != "auto") null else if (keeps_rows(tables$data, set)) "paired" else "population"
    if (of_set == "paired" && nrow(set) != nrow(tables$data)) {
      invalid_input("null 'paired' needs sets with the rows of the data: set ", place, " has not")
    }
    cbind(set = place, pmse_of_set(tables$data, set, tables$columns, of_set))
  })
  do.call(rbind, rows)
}

pmse_of_set <- function(data, set, columns, null) {
  is_synthetic <- rep(c(0, 1), c(nrow(data), nrow(set)))
  design <- do.call(cbind, lapply(columns, function(column) main_effects(data[[column]], set[[column]])))
  basis <- orthonormal_basis(design)
  p <- logistic_propensities(basis, is_synthetic)
  pmse <- mean((p - mean(is_synthetic))^2)
  expected <- null_of_pmse(basis, is_synthetic, null)
  data.frame(
    pmse = pmse, null_mean = expected$mean, null_sd = expected$sd,
    ratio = if (expected$mean > 1e-15) pmse / expected$mean else 0,
    standardised = if (expected$sd > 1e-15) (pmse - expected$mean) / expected$sd else 0, null = null
  )
}

# Standardized numbers, or indicators of levels, and of missing values, of both columns stacked.
main_effects <- function(data, set) {
  if (is_number(data)) {
    values <- c(as.double(data), as.double(set))
    missing <- is.na(values)
    values[missing] <- mean(values, na.rm = TRUE)
    columns <- matrix(values)
  } else {
    values <- c(as.character(data), as.character(set))
    missing <- is.na(values)
    levels <- sort(unique(values[!missing]), method = "radix")[-1]
    columns <- outer(values, levels, `==`) + 0
    columns[missing, ] <- 0
  }
  if (any(missing)) cbind(columns, missing + 0) else columns
}

orthonormal_basis <- function(columns) {
  n <- nrow(columns)
  centered <- sweep(columns, 2, colMeans(columns))
  size <- sqrt(colSums(centered^2))
  varied <- size > 1e-10 * sqrt(n) * apply(abs(columns), 2, max)
  intercept <- matrix(1 / sqrt(n), n, 1)
  if (!any(varied)) {
    return(intercept)
  }
  parts <- qr(sweep(centered[, varied, drop = FALSE], 2, size[varied], "/"), LAPACK = TRUE)
  diagonal <- abs(diag(parts$qr))
  rank <- sum(diagonal > 1e-9 * diagonal[1])
  cbind(intercept, qr.Q(parts)[, seq_len(rank), drop = FALSE])
}

# Unpenalized logistic regression; linear predictors are held at 35, where rows are separable.
logistic_propensities <- function(basis, y) {
  deviance <- function(linear) sum(pmax(linear, 0) + log1p(exp(-abs(linear))) - y * linear)
  linear <- rep(0, length(y))
  loss <- deviance(linear)
  for (round in 1:100) {
    p <- stats::plogis(linear)
    curved <- pmax(p * (1 - p), 1e-12)
    information <- crossprod(basis * sqrt(curved)) + diag(1e-12, ncol(basis))
    step <- drop(basis %*% solve(information, crossprod(basis, y - p)))
    for (half in 0:29) {
      new <- clip(linear + step / 2^half, -35, 35)
      lower <- deviance(new)
      if (lower < loss) break
    }
    if (lower > loss - 1e-10 * (1 + loss)) break
    linear <- new
    loss <- lower
  }
  stats::plogis(linear)
}

null_of_pmse <- function(basis, is_synthetic, null) {
  total <- nrow(basis)
  if (null == "paired") {
    difference <- basis[is_synthetic == 1, , drop = FALSE] - basis[is_synthetic == 0, , drop = FALSE]
    spread <- crossprod(difference) / (4 * total)
    return(list(mean = sum(diag(spread)), sd = sqrt(2 * sum(spread^2))))
  }
  c <- mean(is_synthetic)
  size <- c * (1 - c) / total
  list(mean = size * (ncol(basis) - 1), sd = size * sqrt(2 * (ncol(basis) - 1)))
}

is_number <- function(column) is.numeric(column) && !is.factor(column)

present_values <- function(column, name) {
  values <- as.double(column)
  values <- values[!is.na(values)]
  if (length(values) == 0 || !all(is.finite(values))) {
    invalid_input("column '", name, "' must have values, all of them finite")
  }
  values
}

# True if row i of a set can be the synthetic version of row i: a column that varies is unchanged.
keeps_rows <- function(data, set) {
  nrow(data) == nrow(set) && any(vapply(intersect(names(data), names(set)), function(name) {
    values <- as.character(data[[name]])
    length(unique(values)) > 1 && identical(values, as.character(set[[name]]))
  }, TRUE))
}

# Data and sets as plain data frames, and the columns compared.
compared_tables <- function(synthetic, data, columns, numbers = FALSE) {
  if (!is.data.frame(data)) {
    invalid_input("data must be a data.frame: found ", if (is.null(data)) "NULL" else class(data)[1])
  }
  data <- as.data.frame(data)
  sets <- sets_of(synthetic)
  shared <- Reduce(intersect, lapply(sets, names), names(data))
  if (is.null(columns)) {
    columns <- if (numbers) shared[vapply(data[shared], is_number, TRUE)] else shared
  }
  absent <- setdiff(columns, shared)
  if (length(absent) > 0) {
    invalid_input("columns must be in the data and in each set: '", absent[1], "' is not")
  }
  for (name in columns) {
    kinds <- vapply(c(list(data), sets), function(table) is_number(table[[name]]), TRUE)
    if (length(unique(kinds)) > 1 || (numbers && !kinds[1])) {
      invalid_input("column '", name, "' must hold numbers", if (!numbers) " everywhere, or nowhere")
    }
    if (any(class(data[[name]]) %in% c("integer64", "haven_labelled"))) {
      invalid_input("column '", name, "' must be of a class of R itself: found ", class(data[[name]])[1])
    }
  }
  if (length(columns) == 0) invalid_input("columns must be at least one: the tables share none")
  list(data = data, sets = sets, columns = columns)
}
