# From a data frame and a formula, or its text, to an outcome, a design matrix and an offset.

# Outcome y (length n), design matrix X (n by K) and offset (length n) of a formula. `numbers_of` makes
# numbers of the outcome's column.
read_design <- function(formula, data,
                        numbers_of = function(y) check_vector(y, "the outcome")) {
  formula <- tryCatch(stats::as.formula(formula, env = terms_home()), error = function(problem) {
    invalid_input("formula must be of the form outcome ~ predictors: ", conditionMessage(problem))
  })
  if (length(formula) != 3) {
    invalid_input("formula must be of the form outcome ~ predictors: found ", deparse1(formula))
  }
  if (!is.data.frame(data)) {
    invalid_input("data must be a data.frame: found ", class(data)[1])
  }
  if ("|" %in% all.names(formula[[3]])) {
    invalid_input("formula must have no '|': write g, a coefficient for each level, in the place of ",
                  "(1 | g): found ", deparse1(formula))
  }
  data[] <- lapply(data, function(column) {
    if (is.character(column)) factor(column, sort(unique(column), method = "radix")) else column
  })
  frame <- tryCatch(
    stats::model.frame(formula, data, na.action = stats::na.pass),
    error = function(problem) {
      invalid_input("R cannot evaluate ", deparse1(formula), ": ", conditionMessage(problem))
    }
  )
  y <- numbers_of(stats::model.response(frame))
  X <- stats::model.matrix(formula, frame)
  offset <- stats::model.offset(frame)
  offset <- if (is.null(offset)) rep(0, length(y)) else as.double(offset)
  missing <- which(!is.finite(y) | !is.finite(rowSums(X)) | !is.finite(offset))
  if (length(missing) > 0) {
    invalid_input(
      "outcome and predictors must be finite: record ", missing[1], " is not; ",
      "drop or impute such records before synthesis"
    )
  }
  list(y = unname(y), X = X, offset = offset)
}

# Where the terms of a formula given as text are looked up: splines are at hand, as in Python.
terms_home <- function() {
  list2env(list(bs = splines::bs, ns = splines::ns), parent = globalenv())
}

# Versions of R, its platform and packages, for the record; "" for what is not installed.
versions <- function(packages) {
  version <- function(name) {
    tryCatch(as.character(utils::packageVersion(name)), error = function(missing) "")
  }
  c(
    list(R = as.character(getRversion()), platform = R.version$platform),
    sapply(packages, version, simplify = FALSE)
  )
}
