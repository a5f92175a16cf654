# What rstan and cmdstanr need to run, and the cache of compiled programs.

compiled <- new.env(parent = emptyenv())

require_rstan <- function() {
  if (!requireNamespace("rstan", quietly = TRUE)) {
    engine_unavailable(
      "rstan must be installed: not found in this R; run install.packages(\"rstan\"), ",
      "or on Debian and Ubuntu: apt-get install r-cran-rstan"
    )
  }
  boost <- boost_folder(system.file("include", package = "BH"), "/usr/include")
  invisible(rstan::rstan_options(boost_lib = boost)) # returns the one before
}

# Debian's r-cran-bh holds no headers: they are those of the system's libboost-dev.
boost_folder <- function(...) {
  folders <- c(...)
  found <- folders[nzchar(folders) & dir.exists(file.path(folders, "boost"))]
  if (length(found) == 0) {
    engine_unavailable(
      "Boost headers must be found for rstan to compile: neither package BH nor the system has ",
      "them; run install.packages(\"BH\"), or on Debian and Ubuntu: apt-get install libboost-dev"
    )
  }
  found[[1]]
}

# cmdstanr is not on CRAN and so not declared: its functions are looked up when they are needed.
from_cmdstanr <- function(name) getExportedValue("cmdstanr", name)

require_cmdstanr <- function() {
  if (!nzchar(system.file(package = "cmdstanr"))) {
    engine_unavailable(
      "cmdstanr must be installed: not found in this R; run install.packages(\"cmdstanr\", ",
      "repos = c(\"https://stan-dev.r-universe.dev\", getOption(\"repos\")))"
    )
  }
  if (is.null(from_cmdstanr("cmdstan_version")(error_on_NA = FALSE))) {
    engine_unavailable("CmdStan must be installed: not found; run cmdstanr::install_cmdstan()")
  }
}

compile_rstan <- function(text, cache_folder) {
  key <- program_key(text)
  if (!is.null(compiled[[key]])) {
    return(compiled[[key]])
  }
  file <- if (!is.null(cache_folder)) file.path(cache_folder, paste0("rstan-", key, ".rds"))
  model <- read_compiled(file)
  if (is.null(model)) {
    if (interactive()) message("compiling the program by rstan: about a minute, once")
    model <- as_sampling_error(
      rstan::stan_model(model_code = text, model_name = "pyhybrid", auto_write = FALSE)
    )
    write_compiled(model, file)
  }
  compiled[[key]] <- model
  model
}

# What a compiled program depends on: its text, rstan, R and the platform.
program_key <- function(text) {
  file <- tempfile()
  on.exit(unlink(file))
  parts <- c(text, as.character(utils::packageVersion("rstan")), R.version.string, R.version$platform)
  writeLines(parts, file)
  unname(tools::md5sum(file))
}

read_compiled <- function(file) {
  if (is.null(file) || !file.exists(file)) {
    return(NULL)
  }
  tryCatch(readRDS(file), error = function(broken) NULL)
}

# Written beside and renamed, so that another session never reads half a file.
write_compiled <- function(model, file) {
  if (is.null(file)) {
    return(invisible())
  }
  folder <- dirname(file)
  dir.create(folder, recursive = TRUE, showWarnings = FALSE, mode = "0700")
  part <- tempfile("part", tmpdir = folder)
  tryCatch(
    {
      saveRDS(model, part)
      file.rename(part, file)
    },
    error = function(problem) {
      engine_unavailable("the cache folder ", folder, " cannot be written: name a folder of yours")
    },
    warning = function(problem) {
      engine_unavailable("the cache folder ", folder, " cannot be written: name a folder of yours")
    }
  )
  invisible()
}

# An interrupted call of rstan may leave R's messages diverted into a file of one of its chains.
undivert_messages <- function(before) {
  now <- sink.number(type = "message")
  if (now != before) {
    sink(if (before != 2) getConnection(before), type = "message")
    close(getConnection(now))
  }
}
