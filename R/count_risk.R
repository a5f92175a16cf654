# Count risk of single records: radius and pairwise risk.

#' Radius and pairwise identification risk
#'
#' `radius_risk()` is the share of records outside the closed ball around each record's value (the
#' count risk IR_i); the record itself counts as inside. `pairwise_risk()` averages, over the other
#' records j, the share of records outside both balls of i and j. Both cost n log n.
#'
#' @param y Sensitive values, finite, a vector of length n.
#' @param radius Above 0: a share of `|y_i|` (`kind = "relative"`) or in the unit of `y`
#'   (`"absolute"`). Published values are 0.15, 0.20, 0.25 and 0.30, relative. With a relative
#'   radius, a value of 0 is matched by exact ties only. Of categories coded by integers, an absolute
#'   radius of 0.5 counts those in another: a record's uniqueness, or isolation within `pattern`.
#' @param kind `"relative"` or `"absolute"`.
#' @param pattern What an intruder knows of each record: a vector of length n, or a matrix or data
#'   frame with n rows (categorical). Records are compared, and the share is taken, only among those
#'   with the same pattern. Missing values are a level of their own.
#' @return Risks in \[0, 1), a vector of length n. A record alone in its pattern gets 0.
#' @references Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399, sec. 2 and 3.
#' @examples
#' radius_risk(c(10, 11, 12, 40), radius = 0.2)
#' @export
radius_risk <- function(y, radius = 0.2, kind = "relative", pattern = NULL) {
  by_pattern(y, radius, kind, pattern, function(balls) 1 - balls$size / balls$n)
}

#' @rdname radius_risk
#' @export
pairwise_risk <- function(y, radius = 0.2, kind = "relative", pattern = NULL) {
  by_pattern(y, radius, kind, pattern, pairwise_in_group)
}

by_pattern <- function(y, radius, kind, pattern, risk) {
  y <- check_vector(y, "y")
  wrong <- which(!is.finite(y))
  if (length(wrong) > 0) {
    invalid_input("y must be finite: record ", wrong[1], " is not")
  }
  radius <- check_positive(radius, "radius")
  check_choice(kind, "kind", c("relative", "absolute"))
  group <- pattern_codes(pattern, length(y))
  result <- lapply(split(y, group), function(part) risk(balls_of(part, radius, kind)))
  unsplit(result, group)
}

# One whole number per distinct row of the pattern.
pattern_codes <- function(pattern, n) {
  if (is.null(pattern)) {
    return(rep(1, n))
  }
  columns <- if (length(dim(pattern)) == 2) as.data.frame(pattern) else list(pattern)
  if (length(dim(pattern)) > 2 || any(lengths(columns) != n)) {
    invalid_input("pattern must have length n or (n, p), n = ", n, ": found ", show_shape(pattern))
  }
  code <- rep(1, n)
  for (column in columns) {
    level <- match(column, unique(column))
    code <- code * (max(level) + 1) + level
    code <- match(code, unique(code))
  }
  code
}

# Closed balls as ranges first..last of the sorted distinct values. Rounded subtraction is monotone,
# so bisection on |y_j - y_i| <= r_i itself gives what a double loop over records would give.
balls_of <- function(y, radius, kind) {
  value <- sort(unique(y))
  place <- match(y, value)
  count <- tabulate(place, length(value))
  reach <- if (kind == "relative") radius * abs(value) else rep(radius, length(value))
  own <- seq_along(value)
  first <- bisect(rep(1, length(value)), own, function(j) value - value[j] <= reach)
  beyond <- bisect(own, rep(length(value) + 1, length(value)), function(j) {
    !(value[pmin(j, length(value))] - value <= reach)
  })
  total <- c(0, cumsum(count))
  list(
    n = length(y), count = count, first = first[place], last = beyond[place] - 1,
    size = (total[beyond] - total[first])[place]
  )
}

# Smallest index in low..high at which `holds` is true, for many searches at once; `high` if none.
bisect <- function(low, high, holds) {
  while (any(low < high)) {
    middle <- (low + high) %/% 2
    found <- holds(middle) | low >= high
    high <- ifelse(found, pmin(middle, high), high)
    low <- ifelse(found, low, middle + 1)
  }
  high
}

pairwise_in_group <- function(balls) {
  n <- balls$n
  if (n == 1) {
    return(0)
  }
  # cover[v]: how many of the n balls hold the distinct value v.
  d <- length(balls$count)
  cover <- cumsum(tabulate(balls$first, d) - c(0, tabulate(balls$last, d)[-d]))
  overlap <- c(0, cumsum(balls$count * cover))
  shared <- overlap[balls$last + 1] - overlap[balls$first] - balls$size
  either <- (n - 1) * balls$size + (sum(balls$size) - balls$size) - shared
  1 - either / (n * (n - 1))
}
