# The release that examples read, of simulated records: Rscript inst/extdata/make_release.R
library(pyhybrid)
set.seed(1)
sex <- rep(c("f", "m"), 50)
survey <- data.frame(visits = rnbinom(100, size = 2, mu = ifelse(sex == "f", 5, 7)), sex = sex)
release <- synthesize(visits ~ sex, survey, "negative_binomial", lipschitz_weighted(reweight = TRUE),
                      m = 3, seed = 1, engine = "rstan", progress = TRUE)
unlink("inst/extdata/release", recursive = TRUE)
write_release(release, "inst/extdata/release")
