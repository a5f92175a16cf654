# Vignettes with real fits, of many minutes: Rscript vignettes/make.R makes .Rmd and figures from .Rmd.orig.
setwd("vignettes")
rstan::rstan_options(boost_lib = "/usr/include") # Debian's BH has no headers of its own
for (file in list.files(pattern = "[.]Rmd[.]orig$")) knitr::knit(file, sub("[.]orig$", "", file))
