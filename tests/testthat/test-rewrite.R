test_that("declarations, initial values, arguments and return types are rewritten", {
  expect_equal(rewrite_arrays("array[n] int<lower=0> y;"), "int<lower=0> y[n];")
  expect_equal(rewrite_arrays("array[n, m] vector<lower=0>[K] v;"), "vector<lower=0>[K] v[n, m];")
  expect_equal(rewrite_arrays("array [ n ] matrix[n, (n+1)] q;"), "matrix[n, (n+1)] q[ n ];")
  expect_equal(
    rewrite_arrays("array[2] real a, b = f(1, 2);"), "real a[2], b[2] = f(1, 2);"
  )
  expect_equal(
    rewrite_arrays("array[] real f(array[] int y, array[,] vector z)"),
    "real[] f(int[] y, vector[,] z)"
  )
  expect_equal(
    rewrite_arrays("array[n] int<lower=0, upper=(n > 3 ? 4 : 5)> y;"),
    "int<lower=0, upper=(n > 3 ? 4 : 5)> y[n];"
  )
})

test_that("comments and everything else stay", {
  text <- "// array[n] int y;\n/* array[n]\nint z; */ real my_array; print(\"array[n] int y;\");"
  expect_equal(rewrite_arrays(text), text)
  expect_equal(
    rewrite_arrays("array[n] int // of records\n  y; // done"), "int // of records\n  y[n]; // done"
  )
})

test_that("single negative binomial calls are guarded, vectorized ones left alone", {
  one <- for_old_rstan("model { target += neg_binomial_2_log_lpmf(y[i] | eta, phi); }")
  expect_match(one, "functions \\{.*phi > 1e8.*pyhybrid_neg_binomial_2_log_lpmf\\(y\\[i\\] \\|")
  own <- for_old_rstan("functions { real f(); } model { neg_binomial_2_log_lpmf(y[i] | 1, 2); }")
  expect_equal(lengths(regmatches(own, gregexpr("functions", own))), 1)
  all <- "model { target += neg_binomial_2_log_lpmf(y | eta, phi); }"
  expect_equal(for_old_rstan(all), all)
})

test_that("every program of the package is read by the rstan that is installed", {
  skip_if_not_installed("rstan")
  folders <- file.path(stan_folder(), c(".", "published"))
  programs <- list.files(folders, "[.]stan$", full.names = TRUE)
  expect_gt(length(programs), 0)
  for (program in programs) {
    text <- whole_text(program)
    if (utils::packageVersion("rstan") < "2.26") text <- for_old_rstan(text)
    utils::capture.output(parsed <- rstan::stanc(model_code = text))
    expect_true(parsed$status, label = basename(program))
  }
})
