# Writes the programs and data of this folder, from brms (2.18.0 wrote those stored):
#   Rscript tests/stored/brms/make_brms.R tests/stored/brms
suppressMessages(library(brms))
folder <- commandArgs(trailingOnly = TRUE)[1]
set.seed(1)
n <- 60
d <- data.frame(age = round(rnorm(n), 2), sex = rep(c("f", "m"), n / 2), w = 1, g = rep(1:6, 10))
d$visits <- rpois(n, exp(0.8 + 0.3 * d$age))
d$score <- round(1 + 0.5 * d$age + rnorm(n), 2)
b <- prior(normal(0, 2.5), class = "b")
flat <- c(b, prior(normal(0, 10), class = "Intercept"))
cases <- list(
  counts = list(bf(visits | weights(w) ~ age + sex), negbinomial(),
                c(flat, prior(gamma(2, 0.5), class = "shape"))),
  groups = list(bf(score | weights(w) ~ age + (1 | g)), gaussian(),
                c(flat, prior(normal(0, 2), class = "sigma"), prior(normal(0, 2), class = "sd"))),
  plain = list(bf(visits ~ age), poisson(), flat)
)
for (name in names(cases)) {
  own <- cases[[name]]
  code <- make_stancode(own[[1]], data = d, family = own[[2]], prior = own[[3]])
  data <- make_standata(own[[1]], data = d, family = own[[2]], prior = own[[3]])
  writeLines(code, file.path(folder, paste0(name, ".stan")))
  plain <- lapply(unclass(data), function(x) { attributes(x) <- attributes(x)["dim"]; x })
  plain$Y <- as.vector(plain$Y); plain$weights <- as.vector(plain$weights)
  plain$J_1 <- as.vector(plain$J_1); plain$Z_1_1 <- as.vector(plain$Z_1_1)
  plain <- plain[!vapply(plain, is.null, logical(1))]
  jsonlite::write_json(plain, file.path(folder, paste0(name, ".json")), auto_unbox = TRUE, digits = 8)
}
utils::write.csv(d, file.path(folder, "data.csv"), row.names = FALSE)
