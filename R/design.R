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
    invalid_input("data must be a data.frame: found ", if (is.null(data)) "NULL" else class(data)[1])
  }
  if (nrow(data) == 0) invalid_input("data must have at least 1 record: found none")
  if ("|" %in% all.names(formula[[3]])) {
    invalid_input("formula must have no '|': write g, a coefficient for each level, in the place of ",
                  "(1 | g): found ", deparse1(formula))
  }
  data <- columns_of(formula, data)
  data[] <- lapply(data, function(column) {
    if (is.character(column)) factor(column, sort(unique(column), method = "radix")) else column
  })
  frame <- tryCatch(
    stats::model.frame(formula, data, na.action = stats::na.pass),
    error = function(problem) {
      invalid_input("R cannot evaluate ", deparse1(formula), ": ", conditionMessage(problem))
    }
  )
  check_frame(frame)
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

# The columns that a formula reads, as a plain data frame; those of other classes than R's own are
# refused by name, as their numbers mean something else to R.
columns_of <- function(formula, data) {
  read <- intersect(all.vars(formula), names(data))
  if ("." %in% all.names(formula)) read <- names(data)
  for (name in read) {
    class <- class(data[[name]])
    if (!is.object(data[[name]]) || any(class %in% classes_read)) next
    remedy <- if ("integer64" %in% class) {
      "as.numeric() makes numbers of it, exact up to 2^53"
    } else if (any(c("haven_labelled", "labelled") %in% class)) {
      "haven::as_factor() or haven::zap_labels() says what it holds, values declared missing included"
    } else {
      "make a plain number, factor or text of it"
    }
    invalid_input("column '", name, "' must be of a class of R itself: found ", class[1], "; ", remedy)
  }
  as.data.frame(data)
}

classes_read <- c("factor", "Date", "POSIXct", "difftime", "AsIs", "matrix")

# Values that are missing, and predictors with one level, by record and by name.
check_frame <- function(frame) {
  absent <- lapply(frame, function(column) {
    there <- is.na(column)
    if (length(dim(there)) == 2) rowSums(there) > 0 else there
  })
  missing <- which(Reduce(`|`, absent))
  if (length(missing) > 0) {
    invalid_input(
      "outcome and predictors must be finite: record ", missing[1], " is not; ",
      "drop or impute such records before synthesis"
    )
  }
  for (name in names(frame)[-1]) {
    levels <- if (is.logical(frame[[name]])) unique(frame[[name]]) else levels(frame[[name]])
    if (!is.null(levels) && length(levels) < 2) {
      invalid_input("predictor '", name, "' must have at least 2 levels: found ", length(levels),
                    "; leave it out of the formula")
    }
  }
}

# Name of the outcome's column; NULL where the left side is an expression.
outcome_name <- function(formula) {
  left <- stats::as.formula(formula)[[2]]
  if (is.name(left)) as.character(left)
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
