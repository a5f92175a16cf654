release <- function(...) {
  data <- survey()
  data$group <- factor(rep(c("b", "a"), 30), c("b", "a", "unused"))
  data$day <- as.Date("2024-02-28") + seq_len(60)
  data$age[3] <- NA
  data$text <- c("a,b", "\"q\"", NA, "NA", rep("x", 56))
  data$real <- c(1 / 3, 1e300, -1e-300, NA, 0.1, rep(2, 55))
  data$yes <- data$voted == 1
  synthesize(visits ~ sex, data, "poisson", m = 2, refits = 4, engine = normal_draws(), progress = FALSE, ...)
}
everything <- c("group", "voted", "income", "share", "age", "day", "text", "real", "yes")

test_that("a folder gives back what was written, exactly", {
  made <- release(seed = 3)
  path <- new_folder()
  write_release(made, path, keep = everything)
  again <- from_release(path)
  for (set in 1:2) {
    before <- droplevels(made$synthetic[[set]])
    for (name in names(before)) expect_identical(again$synthetic[[set]][[name]], before[[name]], label = name)
  }
  shown <- setdiff(names(made$charge), "cap")
  for (name in shown) expect_equal(again$charge[[name]], made$charge[[name]], label = name)
  expect_equal(confidential(again)$alpha, confidential(made)$alpha)
  expect_equal(confidential(again)$bounds$overall, confidential(made)$bounds$overall)
  expect_output(print(again), "epsilon = ")
  expect_error(coef(again), "the draws are not there")
  # And once more, from what was read.
  twice <- new_folder()
  write_release(again, twice, keep = everything)
  for (file in list.files(path, recursive = TRUE, pattern = "csv$|schema|run.json")) {
    expect_identical(readLines(file.path(twice, file)), readLines(file.path(path, file)), label = file)
  }
})

test_that("public/ holds nothing confidential, and can be read alone", {
  made <- release()
  path <- new_folder()
  write_release(made, path, keep = character())
  public <- unlist(lapply(list.files(file.path(path, "public"), full.names = TRUE), readLines))
  own <- confidential(made)
  weights <- own$alpha[own$alpha > 0 & own$alpha < 1]
  hidden <- c(own$seed, own$bounds$overall, weights, own$loss$loss)
  for (number in hidden) expect_false(any(grepl(substr(shortest_text(number), 1, 8), public, fixed = TRUE)))
  expect_match(paste(public, collapse = " "), "asymptotic local")
  expect_equal(names(from_release(path)$synthetic[[1]]), c("visits", "sex"))
  mode <- format(file.info(file.path(path, "confidential"))$mode)
  if (.Platform$OS.type == "unix") expect_equal(mode, "700")
  unlink(file.path(path, "confidential"), recursive = TRUE)
  expect_equal(charge(from_release(path))$epsilon, charge(made)$epsilon)
  expect_length(confidential(from_release(path)), 0)
  expect_error(write_release(from_release(path), new_folder()), "read without")
})

test_that("no file of others is deleted, and no column slips out", {
  path <- new_folder()
  dir.create(path)
  writeLines("mine", file.path(path, "mine.txt"))
  expect_error(write_release(release(), path, keep = character()), "nothing is deleted")
  expect_equal(list.files(path), "mine.txt")
  expect_error(write_release(release(), new_folder()), "keep must name the columns.*voted")
  expect_error(write_release(release(), new_folder(), keep = "name"), "'name' is not")
  expect_error(from_release(path), "with public/ in it")
  made <- release()
  made$synthetic <- lapply(made$synthetic, function(set) cbind(set, odd = I(as.list(1:60))))
  expect_error(write_release(made, new_folder(), keep = c("odd")), "'odd' must be a number")
})

test_that("the release that examples read is there", {
  stored <- from_release(system.file("extdata", "release", package = "pyhybrid"))
  expect_equal(length(stored$synthetic), 3)
  expect_gt(charge(stored)$epsilon, charge(stored)$epsilon_published - 0.01)
  expect_equal(nobs(stored), 100)
})
