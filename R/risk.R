# Disclosure risk of synthetic records: matching on quasi-identifiers.

#' Disclosure risk of synthetic data by matching
#'
#' An intruder knows the `keys` of a target, record i of the data, and looks for it in a synthetic set. A
#' record matches if every key is equal or, with a radius, lies in the closed ball around the target's
#' value. With c matches the intruder names one of them at random. A missing key equals a missing key and
#' nothing else.
#'
#' @param synthetic,data As in [utility].
#' @param keys Columns that the intruder knows.
#' @param radius Largest distance that matches, >= 0: a number for every key of numbers, or numbers named
#'   by key. All other keys must be equal.
#' @param kind `"absolute"`, or `"relative"`: a share of the target's absolute value.
#' @param rows_correspond Whether row i of each set is the synthetic version of row i of the data; if
#'   `NULL`, whether each set has the rows of the data and some column that varies is unchanged.
#' @return An object of class `pyhybrid_risk`: a list with `by_record` (vector of length n), 1/c averaged
#'   over the sets and 0 where nothing matches: the probability that the intruder gives to the record that he
#'   names; `n_matches` (length n); and averages over the sets: `mean_risk`, `n_unique_matches`,
#'   `n_no_match`, and, where rows correspond and else `NA`, `expected_match_risk` (targets named
#'   correctly), `true_match_rate`, `false_match_rate` (0 for a set without unique matches). Confidential.
#' @references Reiter, Mitra (2009), J. Privacy and Confidentiality 1:99-110. Hu, Savitsky, Williams
#'   (2022), JSSAM 10:1370-1399. Jiang, Raftery, Steele, Wang (2022), JASA.
#' @examples
#' data <- data.frame(age = c(30, 50, 70), sex = c("f", "m", "m"))
#' set <- data.frame(age = c(31, 28, 71), sex = c("f", "f", "m"))
#' disclosure_risk(set, data, keys = c("age", "sex"), radius = c(age = 2))$by_record
#' @export
disclosure_risk <- function(synthetic, data, keys, radius = NULL, kind = "absolute",
                            rows_correspond = NULL) {
  if (!is.character(keys) || length(keys) == 0) invalid_input("keys must be names of columns")
  tables <- compared_tables(synthetic, data, keys)
  check_choice(kind, "kind", c("absolute", "relative"))
  radii <- radii_of(tables$data, keys, radius, kind)
  correspond <- rows_correspond_in(synthetic, data, rows_correspond)
  n <- nrow(tables$data)
  found <- lapply(tables$sets, function(set) matches_in(set, tables$data, keys, radii, correspond))
  part <- function(name) vapply(found, function(one) as.double(one[[name]]), numeric(n))
  count <- matrix(part("count"), n)
  own <- matrix(part("own"), n)
  chance <- ifelse(count > 0, 1 / count, 0)
  unique_matches <- colSums(count == 1)
  structure(
    list(
      by_record = rowMeans(chance), n_matches = rowMeans(count), mean_risk = mean(chance),
      n_unique_matches = mean(unique_matches), n_no_match = mean(colSums(count == 0)),
      expected_match_risk = mean(colSums(chance * own)),
      true_match_rate = mean(colMeans((count == 1) * own)),
      false_match_rate = mean(colSums((count == 1) * (1 - own)) / pmax(unique_matches, 1)),
      n_targets = n, n_sets = length(found)
    ),
    class = "pyhybrid_risk"
  )
}

#' @export
print.pyhybrid_risk <- function(x, digits = 3, ...) {
  shown <- x[c("mean_risk", "n_unique_matches", "n_no_match", "expected_match_risk",
               "true_match_rate", "false_match_rate")]
  cat("Matching risk of", x$n_targets, "records over", x$n_sets, "synthetic set(s), confidential\n")
  cat(paste0("  ", format(names(shown)), "  ", vapply(shown, format, "", digits = digits), "\n"), sep = "")
  invisible(x)
}

rows_correspond_in <- function(synthetic, data, rows_correspond) {
  sets <- sets_of(synthetic)
  if (is.null(rows_correspond)) {
    return(all(vapply(sets, function(set) keeps_rows(as.data.frame(data), set), TRUE)))
  }
  unlike <- which(vapply(sets, nrow, 0L) != nrow(data))
  if (check_flag(rows_correspond, "rows_correspond") && length(unlike) > 0) {
    invalid_input("rows can correspond only in sets of ", nrow(data), " rows: set ", unlike[1], " has ",
                  nrow(sets[[unlike[1]]]))
  }
  rows_correspond
}

# Radius of each target by key; 0.8 - 0.7 is above 0.1 by rounding, which the ball is closed for.
radii_of <- function(data, keys, radius, kind) {
  numbers <- keys[vapply(data[keys], is_number, TRUE)]
  if (!is.null(radius) && is.null(names(radius))) {
    if (length(numbers) == 0) invalid_input("a radius needs a key with numbers: all keys are categorical")
    radius <- stats::setNames(rep(check_nonnegative(radius, "radius"), length(numbers)), numbers)
  }
  wrong <- setdiff(names(radius), numbers)
  if (length(wrong) > 0) {
    invalid_input("radius must name keys that hold numbers: '", wrong[1], "' does not")
  }
  lapply(stats::setNames(keys, keys), function(key) {
    width <- if (key %in% names(radius)) check_nonnegative(radius[[key]], "radius") else 0
    if (!key %in% numbers) return(NULL)
    size <- abs(data[[key]])
    size[is.na(size)] <- 0
    ball <- width * (if (kind == "relative") size else rep(1, length(size)))
    ifelse(ball > 0, ball + 4 * .Machine$double.eps * (size + ball), 0)
  })
}

# How many records of a set match each target, and whether its own row does.
matches_in <- function(set, data, keys, radii, correspond) {
  columns <- lapply(keys, function(key) {
    number <- !is.null(radii[[key]])
    as_key <- if (number) as.double else as.character
    list(target = as_key(data[[key]]), set = as_key(set[[key]]), radius = radii[[key]])
  })
  inside <- function(column, i) {
    target <- column$target[i]
    if (is.na(target)) {
      return(is.na(column$set))
    }
    near <- if (is.null(column$radius)) {
      column$set == target
    } else {
      abs(column$set - target) <= column$radius[i]
    }
    !is.na(near) & near
  }
  found <- vapply(seq_len(nrow(data)), function(i) {
    match <- Reduce(`&`, lapply(columns, inside, i))
    c(sum(match), if (correspond) match[i] else NA)
  }, numeric(2))
  list(count = found[1, ], own = found[2, ])
}
