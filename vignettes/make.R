# Vignettes with real fits, of many minutes: Rscript vignettes/make.R makes .Rmd and figures from .Rmd.orig.
setwd("vignettes")
for (file in list.files(pattern = "[.]Rmd[.]orig$")) knitr::knit(file, sub("[.]orig$", "", file))
