# Synthetic data beside the data, as synthpop's compare().

#' Compare synthetic data with the data
#'
#' Numbers by mean, median and percentiles with intervals and by their distribution functions, categories
#' by their shares, all columns together by pMSE ([utility]).
#'
#' @param object A release of [synthesize()], a data frame or a list of data frames.
#' @param data The data. Confidential, and so is the result.
#' @param columns Columns compared; of a release the synthesized one, else all that both have, if `NULL`.
#' @param seed,... Of the resamples, see [utility_estimates()].
#' @return An object of class `pyhybrid_comparison`: a list of the data frames `estimates`, `ecdf`,
#'   `shares` (column, level, data, synthetic; in percent) and `pmse`, with a method for `plot`.
#' @examples
#' release <- from_release(system.file("extdata", "release", package = "pyhybrid"))
#' data <- transform(release$synthetic[[1]], visits = rev(visits)) # in the place of the data
#' compare(release, data, seed = 1)
#' @export
compare <- function(object, data, columns = NULL, seed = NULL, ...) UseMethod("compare")

#' @rdname compare
#' @export
compare.pyhybrid_release <- function(object, data, columns = NULL, seed = NULL, ...) {
  if (is.null(columns)) columns <- object$outcome
  compare.default(object, data, columns, seed, ...)
}

#' @rdname compare
#' @export
compare.default <- function(object, data, columns = NULL, seed = NULL, ...) {
  tables <- compared_tables(object, data, columns)
  number <- vapply(tables$data[tables$columns], is_number, TRUE)
  numbers <- tables$columns[number]
  categories <- tables$columns[!number]
  sets <- tables$sets
  structure(
    list(
      estimates = if (length(numbers) > 0) {
        utility_estimates(sets, tables$data, numbers, seed = seed, ...)
      },
      ecdf = if (length(numbers) > 0) utility_ecdf(sets, tables$data, numbers),
      shares = do.call(rbind, lapply(categories, shares_of, tables)),
      pmse = utility_pmse(sets, tables$data)
    ),
    class = "pyhybrid_comparison"
  )
}

shares_of <- function(column, tables) {
  as_text <- function(table) {
    values <- as.character(table[[column]])
    ifelse(is.na(values), "missing", values)
  }
  everything <- lapply(c(list(tables$data), tables$sets), as_text)
  levels <- sort(unique(unlist(everything)), method = "radix")
  percent <- vapply(everything, function(values) {
    100 * tabulate(match(values, levels), length(levels)) / length(values)
  }, numeric(length(levels)))
  percent <- matrix(percent, length(levels))
  data.frame(
    column = column, level = levels, data = percent[, 1],
    synthetic = rowMeans(percent[, -1, drop = FALSE])
  )
}

#' @export
print.pyhybrid_comparison <- function(x, digits = 4, ...) {
  cat("Synthetic data beside the data, confidential\n")
  if (!is.null(x$estimates)) {
    print(x$estimates, digits = digits, row.names = FALSE)
    print(x$ecdf, digits = digits, row.names = FALSE)
  }
  if (!is.null(x$shares)) print(x$shares, digits = digits, row.names = FALSE)
  cat("pMSE of all columns:", format(mean(x$pmse$pmse), digits = digits), "  ratio to its null:",
      format(mean(x$pmse$ratio), digits = digits), "\n")
  invisible(x)
}

#' @export
plot.pyhybrid_comparison <- function(x, ...) plot_estimates(x$estimates)
