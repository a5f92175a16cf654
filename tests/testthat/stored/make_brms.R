# Two fits of real brms, one with weights, without their compiled program: Rscript tests/testthat/stored/make_brms.R
suppressMessages(library(brms)); library(rstan); rstan_options(boost_lib="/usr/include")
set.seed(2)
d <- data.frame(y = rpois(12, 4), x = round(rnorm(12),2), w = rep(c(0.5, 1, 0.25), 4))
out <- list()
for (kind in c("plain","weighted")) {
  f <- if (kind=="plain") bf(y ~ x) else bf(y | weights(w) ~ x)
  fit <- brm(f, d, poisson(), chains = 2, iter = 60, warmup = 50, refresh = 0, seed = 1)
  fit$fit@stanmodel <- new("stanmodel"); fit$fit@.MISC <- new.env()
  fit$fit@inits <- list()
  out[[kind]] <- fit
}
saveRDS(out, "tests/testthat/stored/brms.rds", compress="xz")
