# Two fits of real brms, one with weights, without their compiled program:
# Rscript tests/testthat/stored/make_brms.R
library(brms)
rstan::rstan_options(boost_lib = "/usr/include")
set.seed(2)
data <- data.frame(y = rpois(12, 4), x = round(rnorm(12), 2), w = rep(c(0.5, 1, 0.25), 4))
light <- function(formula) {
  fit <- brm(formula, data, poisson(), chains = 2, iter = 60, warmup = 50, refresh = 0, seed = 1)
  fit$fit@stanmodel <- new("stanmodel")
  fit$fit@.MISC <- new.env()
  fit$fit@inits <- list()
  fit
}
fits <- list(plain = light(bf(y ~ x)), weighted = light(bf(y | weights(w) ~ x)))
saveRDS(fits, "tests/testthat/stored/brms.rds", compress = "xz")
