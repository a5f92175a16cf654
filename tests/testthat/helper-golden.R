# The shared cases of tests/golden; see the README there.

golden_folder <- function() testthat::test_path("..", "golden")

golden_cases <- function(name) {
  testthat::skip_if_not_installed("jsonlite")
  file <- file.path(golden_folder(), paste0(name, ".json"))
  if (!file.exists(file)) testthat::skip(paste("golden cases are not here:", file))
  jsonlite::fromJSON(file, simplifyVector = FALSE)$cases
}

# JSON as R has it: lists of numbers are vectors, lists of lists matrices or arrays (rows first).
decode <- function(x) {
  if (is.list(x) && !is.null(names(x))) {
    return(lapply(x, decode))
  }
  if (!is.list(x)) {
    return(if (is.character(x) && x %in% c("Inf", "-Inf", "NaN")) as.numeric(x) else x)
  }
  items <- lapply(x, decode)
  if (length(x) == 0) {
    numeric(0)
  } else if (!any(vapply(x, is.list, TRUE))) {
    unlist(items)
  } else if (is.null(dim(items[[1]]))) {
    do.call(rbind, items)
  } else {
    aperm(simplify2array(items), c(3, 1, 2))
  }
}

decode_arguments <- function(args) {
  charges <- args$charges
  args$charges <- NULL
  args <- decode(args)
  if (!is.null(charges)) args$charges <- charges
  args
}

same_number <- function(found, expected) {
  found <- unname(found)
  expected <- unname(expected)
  if (length(found) != length(expected) || !identical(dim(found), dim(expected))) {
    return(FALSE)
  }
  equal <- found == expected |
    abs(found - expected) <= 1e-12 * pmax(abs(found), abs(expected)) + 1e-15
  all(ifelse(is.nan(expected), is.nan(found), equal))
}

same_value <- function(found, expected) {
  if (is.list(expected)) {
    all(mapply(function(name) same_number(found[[name]], expected[[name]]), names(expected)))
  } else {
    isTRUE(same_number(found, expected))
  }
}

# "{record 3}" counts from 0; R counts from 1. A vector of shape (n,) has length n in R.
message_in_r <- function(text) {
  text <- gsub("(shape )?\\((\\w+),\\)", "length \\2", text, perl = TRUE)
  found <- regmatches(text, regexpr("\\{record [0-9]+\\}", text))
  if (length(found) == 0) {
    return(text)
  }
  number <- as.integer(gsub("[^0-9]", "", found))
  sub(found, paste("record", number + 1L), text, fixed = TRUE)
}

expect_golden <- function(name) {
  for (case in golden_cases(name)) {
    args <- decode_arguments(case$args)
    label <- paste0(name, ", case '", case$name, "'")
    if (is.null(case$error)) {
      testthat::expect_true(
        same_value(do.call(name, args), decode(case$expected)),
        label = label
      )
    } else {
      problem <- tryCatch(do.call(name, args), error = identity)
      testthat::expect_s3_class(problem, "pyhybrid_invalid_input")
      testthat::expect_match(
        conditionMessage(problem), message_in_r(case$error),
        fixed = TRUE, label = label
      )
    }
  }
}
