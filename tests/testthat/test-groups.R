of_groups <- data.frame(
  y = c(3, 0, 2, 5, 1, 4), x = c(1, 2, 3, 5, 4, 9), g = c("b", "a", "b", "a", "c", "c"),
  h = c(2, 1, 1, 2, 1, 2), id = 1:6, one = "a"
)

test_that("levels of groups are indicators after the other columns, the longest last", {
  got <- stan_data(y ~ (1 | g) + x + (1 | h), of_groups, program = "poisson")
  plain <- model.matrix(y ~ x, of_groups)
  expected <- cbind(plain, outer(of_groups$h, 1:2, "=="), outer(of_groups$g, c("a", "b", "c"), "=="))
  expect_equal(got$X, unname(expected), ignore_attr = TRUE)
  expect_equal(c(got$group_term), c(1, 1, 2, 2, 2))
  expect_equal(c(got$n_group_terms, got$n_grouped, got$n_apart, got$K), c(2, 5, 3, 7))
  expect_equal(stan_data(y ~ x, of_groups)$n_group_terms, 0)
})

test_that("the roots of the information are those of the fit without groups", {
  got <- stan_data(y ~ x + (1 | h) + (1 | g), of_groups, program = "poisson")
  mu <- fitted(glm(y ~ x, poisson, of_groups))
  plain <- got$information_root[, 1:4]
  across <- got$information_root[, 5:7]
  root <- rbind(cbind(plain, across), cbind(matrix(0, 3, 4), diag(c(got$apart_root))))
  expect_equal(tcrossprod(root), crossprod(got$X * sqrt(mu)), tolerance = 1e-8, ignore_attr = TRUE)
})

test_that("what is no group is refused with what to write", {
  refused <- function(terms, message) {
    formula <- paste("y ~", terms)
    expect_error(stan_data(formula, of_groups), message, class = "pyhybrid_invalid_input")
  }
  refused("(x | g)", "no slope by group.*write \\(1 \\| g\\)")
  refused("(1 | g/h)", "one column as a group.*paste")
  refused("x * (1 | g)", "terms \\(1 \\| g\\) alone")
  refused("x | g", "terms \\(1 \\| g\\) alone")
  refused("(1 | g) + (1 | g)", "each group once")
  refused("(1 | id)", "each of the 6 has a level of its own")
  refused("(1 | one)", "2 levels or more")
  refused("(1 | q)", "'q' is none")
  refused("(1 | y)", "outcome must not be a group")
  expect_error(
    stan_data(y ~ (1 | g), of_groups, program = "categorical"), "takes no \\(1 \\| g\\)",
    class = "pyhybrid_invalid_input"
  )
})
