made <- synthesize(visits ~ sex + age, survey(), "negative_binomial", refits = 0, engine = normal_draws(),
                   progress = FALSE)
fit <- confidential(made)$weighted

test_that("coefficients have the names of the design's columns", {
  names <- c("(Intercept)", "sexm", "age")
  expect_equal(names(coef(made)), names)
  expect_equal(dimnames(vcov(made)), list(names, names))
  beta <- stacked_draws(fit, "beta")
  expect_equal(unname(coef(fit)), colMeans(beta))
  expect_equal(unname(vcov(fit)), stats::cov(beta))
  expect_equal(nobs(made), 60)
  expect_equal(nobs(fit), 60)
  expect_error(coef(synthesize(share ~ 1, survey(), "beta", refits = 0, engine = normal_draws(),
                               progress = FALSE)), "must have coefficients")
})

test_that("posterior reads iterations as iterations and chains as chains", {
  skip_if_not_installed("posterior")
  three <- list(posterior::as_draws_array(fit), posterior::as_draws_array(made), posterior::as_draws(made))
  for (draws in three) {
    expect_equal(dim(draws), c(100L, 4L, 4L))
    expect_equal(posterior::variables(draws), c("beta[(Intercept)]", "beta[sexm]", "beta[age]", "phi"))
    expect_equal(draws[7, 3, 2], fit$draws$beta[3, 7, 2], ignore_attr = TRUE)
  }
  shown <- posterior::summarise_draws(posterior::as_draws_array(made), "mean", "ess_bulk", "rhat")
  expect_equal(as.numeric(shown$mean[1:3]), unname(coef(made)))
  expect_true(all(shown$ess_bulk > 200), label = "400 independent draws")
  expect_true(all(abs(shown$rhat - 1) < 0.05))
})

test_that("broom's generics give rows for parameters and one for the fit", {
  skip_if_not_installed("generics")
  for (rows in list(generics::tidy(fit), generics::tidy(made, conf.level = 0.95))) {
    expect_equal(rows$term, c("(Intercept)", "sexm", "age", "phi"))
    expect_equal(rows$estimate[1:3], unname(coef(fit)))
    expect_true(all(rows$conf.low < rows$estimate & rows$estimate < rows$conf.high))
  }
  expect_equal(generics::glance(made)$epsilon, charge(made)$epsilon)
  expect_equal(generics::glance(fit)$draws, 400)
  expect_error(generics::tidy(fit, conf.level = 1), "must lie in \\(0, 1\\)")
  combined <- generics::tidy(pool(list(lm(visits ~ sex, survey()), lm(visits ~ sex, survey()))))
  expect_equal(combined$term, c("(Intercept)", "sexm"))
})
