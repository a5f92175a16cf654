# Files of a brms model; brms itself is not needed: a list holds what it gives.

made <- function(weights = c(1, 1, 1)) {
  list(
    stancode = "data { int N; }\n// a program\n",
    standata = list(
      N = 3L, Y = array(c(0.1, 2, 3)), weights = array(weights), K = 1L,
      X = matrix(1:6, 3, dimnames = list(1:3, c("a", "b"))), J = array(7L)
    )
  )
}

test_that("the program is kept, numbers to the last digit, arrays of one element are arrays", {
  skip_if_not_installed("jsonlite")
  given <- made()
  given$standata$Y[1] <- 1 / 3
  files <- as_pyhybrid(given, file.path(tempfile(), "deep"))
  expect_equal(trimws(paste(readLines(files[["stancode"]]), collapse = "\n")),
               trimws(given$stancode))
  text <- paste(readLines(files[["standata"]]), collapse = "")
  read <- jsonlite::fromJSON(text, simplifyVector = TRUE)
  expect_equal(read$Y, as.numeric(given$standata$Y), tolerance = 1e-15)
  expect_equal(read$X, unname(given$standata$X), ignore_attr = TRUE)
  expect_match(text, "\"N\":3", fixed = TRUE)
  expect_match(text, "\"J\":[7]", fixed = TRUE)
})

test_that("weights other than 1, which would act twice, are refused, and nothing is written", {
  skip_if_not_installed("jsonlite")
  folder <- tempfile()
  expect_error(as_pyhybrid(made(c(1, 0.5, 1)), folder), "record 2 has another",
               class = "pyhybrid_invalid_input")
  none <- made()
  none$standata$weights <- NULL
  expect_error(as_pyhybrid(none, folder), "no weights", class = "pyhybrid_invalid_input")
  expect_error(as_pyhybrid(1, folder), "must be a brmsfit", class = "pyhybrid_invalid_input")
  expect_false(file.exists(folder))
})

test_that("files that are there stay", {
  skip_if_not_installed("jsonlite")
  folder <- tempfile()
  as_pyhybrid(made(), folder)
  expect_error(as_pyhybrid(made(), folder), "overwrite = TRUE", class = "pyhybrid_invalid_input")
  expect_silent(as_pyhybrid(made(), folder, overwrite = TRUE))
})
