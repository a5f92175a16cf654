library(testthat)
library(pyhybrid)

test_check("pyhybrid")
