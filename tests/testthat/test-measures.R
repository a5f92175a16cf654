# Python's numbers, tests/golden/measures.
expected <- function() {
  file <- file.path(golden_folder(), "measures", "measures.json")
  if (!file.exists(file)) testthat::skip(paste("golden numbers are not here:", file))
  jsonlite::fromJSON(file)
}
table_of <- function(columns) as.data.frame(columns)
sets_in <- function(golden) {
  lapply(1:3, function(l) table_of(lapply(golden$sets, function(column) column[[l]])))
}

test_that("estimates, distribution functions and pMSE are Python's", {
  golden <- expected()
  data <- table_of(golden$data)
  sets <- sets_in(golden)
  found <- utility_estimates(sets, data, n_resamples = 100, seed = 1)
  for (column in names(golden$estimates)) {
    for (source in c("data", "synthetic")) {
      rows <- found[found$column == column & found$source == source, ]
      expect_equal(rows$statistic, golden$statistics)
      expect_equal(rows$estimate, golden$estimates[[column]][[source]], tolerance = 1e-12)
    }
  }
  ecdf <- utility_ecdf(sets, data)
  expect_equal(ecdf$column, names(golden$ecdf))
  expect_equal(cbind(ecdf$max_ecdf, ecdf$avg_ecdf), do.call(rbind, golden$ecdf), tolerance = 1e-12,
               ignore_attr = TRUE)
  for (null in names(golden$pmse)) {
    pmse <- utility_pmse(sets, data, null = null)
    for (name in names(golden$pmse[[null]])) {
      expect_equal(pmse[[name]], golden$pmse[[null]][[name]], tolerance = 1e-8, label = paste(null, name))
    }
  }
  expect_equal(utility_pmse(sets, data)$null, rep("paired", 3))
})

test_that("matching risk is Python's", {
  golden <- expected()
  data <- table_of(golden$data)
  sets <- sets_in(golden)
  for (case in golden$risk) {
    radius <- unlist(case$radius)
    kind <- if (is.null(case$kind)) "absolute" else case$kind
    risk <- disclosure_risk(sets, data, case$keys, radius, kind)
    for (name in setdiff(names(case), c("keys", "radius", "kind"))) {
      expect_equal(risk[[name]], case[[name]], tolerance = 1e-12, label = name)
    }
  }
  alone <- disclosure_risk(sets[[1]][1:40, ], data, "age")
  expect_true(is.na(alone$expected_match_risk))
  expect_output(print(alone), "confidential")
  expect_error(disclosure_risk(sets, data, "sex", radius = 1), "a radius needs a key with numbers")
  expect_error(disclosure_risk(sets, data, "name"), "'name' is not")
})

test_that("losses of refits, the records left out and sole informants are Python's", {
  golden <- expected()
  for (case in golden$loss) {
    for (delta in c("1e-06", "0.001")) {
      loss <- refit_loss(case$change, case$change_without, as.numeric(delta))
      expect_equal(loss, case[[paste("loss at", delta)]], tolerance = 1e-9)
    }
  }
  chosen <- golden$candidates
  expect_equal(refit_candidates(chosen$deviations, chosen$sizes, 10), chosen$chosen)
  for (case in golden$informants) {
    found <- sole_informants(case$X)
    if (length(case$informants) == 0) {
      expect_equal(nrow(found), 0)
    } else {
      expect_equal(as.matrix(found), case$informants, tolerance = 1e-10, ignore_attr = TRUE)
    }
  }
  expect_equal(refit_loss(c(0, Inf), c(0, 1)), Inf)
  expect_error(refit_loss(c(0, NaN), c(0, 1)), "change must have 2 draws or more")
})

test_that("synthetic data that are the data lose nothing, and are as risky as can be", {
  data <- survey()
  expect_equal(utility_ecdf(data, data)$max_ecdf, rep(0, 5))
  expect_equal(utility_pmse(data, data)$pmse, 0)
  expect_equal(disclosure_risk(data, data, names(data))$mean_risk, 1)
  same <- utility_estimates(data, data, "visits", seed = 1)
  expect_equal(same$estimate[1:4], same$estimate[5:8])
  # Rows that a regression tells apart: 1/4.
  expect_equal(utility_pmse(transform(data, income = income + 1e4), data)$pmse, 0.25, tolerance = 1e-6)
})

test_that("resampled quantiles have the law of a bootstrap", {
  x <- survey()$income
  with_randomness(4, {
    direct <- replicate(4000, stats::quantile(sample(x, replace = TRUE), 0.9, names = FALSE))
    fast <- resampled(x, 0.9, 4000)
  })
  # Two samples of 4000: their means differ by less than 5 standard errors, 5 sd sqrt(2 / 4000).
  expect_lt(abs(mean(direct) - mean(fast)), 5 * stats::sd(direct) * sqrt(2 / 4000))
  expect_lt(max(abs(stats::ecdf(direct)(x) - stats::ecdf(fast)(x))), 1.95 * sqrt(2 / 4000))
})

test_that("an analysis of every set is combined", {
  sets <- lapply(1:3, function(l) transform(survey(), visits = visits + l * (seq_len(60) %% 3)))
  fits <- lapply(sets, function(set) glm(visits ~ sex, poisson, set))
  both <- pool(sets, function(set) glm(visits ~ sex, poisson, set))
  expect_equal(both, pool(fits))
  by_hand <- combine_partially_synthetic(
    do.call(rbind, lapply(fits, coef)), do.call(rbind, lapply(fits, function(fit) diag(vcov(fit))))
  )
  expect_equal(both, by_hand)
  expect_equal(as.data.frame(both)$conf.low, unname(confint(both)[, 1]))
  expect_equal(coef(both), colMeans(do.call(rbind, lapply(fits, coef))))
  expect_equal(pool(fits, rule = "multiple_imputation")$rule, "multiple imputation")
  expect_error(pool(fits[1]), "at least 2 sets")
  sets[[2]]$sex <- "m"
  expect_error(pool(sets, function(set) lm(visits ~ age + sex, set)), "contrasts")
  expect_error(pool(sets, function(set) lm(visits ~ I(sex == "f"), set)), "estimates must be finite")
})

test_that("a comparison shows numbers and categories", {
  set <- transform(survey(), sex = rev(sex), visits = rev(visits))
  both <- compare(set, survey(), seed = 1)
  expect_equal(both$shares$data, c(50, 50))
  expect_output(print(both), "pMSE of all columns")
  expect_error(compare(set, NULL), "data must be a data.frame: found NULL")
  expect_error(compare(set, survey(), "name"), "'name' is not")
})

test_that("figures are made", {
  skip_if_not_installed("ggplot2")
  bounds <- lipschitz_bounds(-matrix(seq_len(12), 3), c(1, 0.5, 0.2, 0))
  figures <- list(
    plot_weights(a = bounds, b = c(0, 1)), plot_bounds(bounds, bounds), plot(bounds),
    plot_ecdf(list(survey(), survey()), survey(), "visits"),
    plot_estimates(utility_estimates(survey(), survey(), seed = 1))
  )
  for (figure in figures) expect_s3_class(ggplot2::ggplot_build(figure), "ggplot_built")
  expect_equal(nrow(figures[[2]]$data), 8)
  expect_equal(range(figures[[4]]$data$height), c(1 / 60, 1))
  expect_error(plot_bounds(1), "must be results of lipschitz_bounds")
  expect_error(plot_weights(), "weights must be given")
})
