# Releases on disk, in the folders of the Python package: tables and JSON.

folder_format <- 2

#' Write a release, and read one that R or Python wrote
#'
#' A folder of two parts: `public/` to give away (synthetic tables, the charge, a privacy statement) and
#' `confidential/` to keep (weights, bounds, the record of the run with its seed), which its owner alone
#' can read. The Python package's `Release.load()` reads what `write_release()` wrote, with its report and
#' ledger, and `from_release()` reads what `Release.save()` wrote. Of a folder with `public/` alone
#' `from_release()` gives what is there.
#'
#' @param release A result of [synthesize()].
#' @param path A folder: new or empty to write to.
#' @param keep Names of columns that are neither synthesized nor in the formula and are to be published
#'   as they are; the others are left out. Names, identifiers and free text must not be among them.
#' @return `write_release()` the path, invisibly; `from_release()` an object of class `pyhybrid_release`.
#'   Draws are not stored: of a release that was read [coef()] and `as_draws_array()` are refused.
#' @examples
#' folder <- system.file("extdata", "release", package = "pyhybrid")
#' release <- from_release(folder)
#' write_release(release, file.path(tempdir(), "release"))
#' @export
write_release <- function(release, path, keep = NULL) {
  if (!inherits(release, "pyhybrid_release")) {
    invalid_input("release must be a result of synthesize(): found ", class(release)[1])
  }
  record <- release$confidential$charge
  if (is.null(record)) invalid_input("release must have its confidential part: it was read without")
  if (!is.character(path) || length(path) != 1) invalid_input("path must be a folder's name")
  inside <- list.files(path, all.files = TRUE, no.. = TRUE)
  if (file.exists(path) && (!dir.exists(path) || length(inside) > 0)) {
    invalid_input("path must be a new or empty folder: there is something in it, and nothing is deleted")
  }
  sets <- lapply(release$synthetic, function(table) published_columns(release, table, keep))
  aside <- tempfile("part", tmpdir = dirname(path))
  dir.create(aside, mode = "0700")
  on.exit(unlink(aside, recursive = TRUE))
  write_public(release, record, sets, file.path(aside, "public"))
  write_confidential(release, record, file.path(aside, "confidential"))
  if (dir.exists(path)) unlink(path, recursive = TRUE)
  Sys.chmod(aside, "0755", use_umask = FALSE)
  if (!file.rename(aside, path)) invalid_input("path must be a folder that can be made: it cannot")
  invisible(path)
}

published_columns <- function(release, table, keep) {
  known <- c(release$outcome, release$predictors)
  others <- setdiff(names(table), known)
  if (length(others) > 0 && is.null(keep)) {
    invalid_input(
      "keep must name the columns that are published as they are, character() for none: neither ",
      "synthesized nor in the formula are ", paste(others, collapse = ", ")
    )
  }
  wrong <- setdiff(keep, names(table))
  if (length(wrong) > 0) invalid_input("keep must name columns of the release: '", wrong[1], "' is not")
  table <- droplevels(table[names(table) %in% c(known, keep)])
  for (name in names(table)) dtype_of(table[[name]], name)
  table
}

# --- Tables --------------------------------------------------------------------------------------

# The Python package's name of a column's type.
dtype_of <- function(column, name) {
  missing <- anyNA(column)
  if (is.factor(column)) return("category")
  if (inherits(column, "Date")) return("datetime64[s]")
  if (inherits(column, "POSIXct")) return("datetime64[us, UTC]")
  if (is.object(column) || is.list(column) || length(dim(column)) > 1) {
    invalid_input("column '", name, "' must be a number, logical, text, factor or date to be written: ",
                  "found ", class(column)[1])
  }
  switch(typeof(column),
    logical = if (missing) "boolean" else "bool",
    integer = if (missing) "Int64" else "int64",
    double = "float64",
    character = "object",
    invalid_input("column '", name, "' must be a number, logical, text, factor or date to be written: ",
                  "found ", typeof(column))
  )
}

text_of <- function(column) {
  text <- if (inherits(column, "POSIXct")) {
    format(column, "%Y-%m-%dT%H:%M:%OS6+00:00", tz = "UTC")
  } else if (is.logical(column)) {
    ifelse(column, "True", "False")
  } else if (is.double(column) && !is.object(column)) {
    shortest_text(column)
  } else {
    as.character(column)
  }
  ifelse(is.na(column), NA_character_, text)
}

# The fewest digits that give back the same double.
shortest_text <- function(numbers) {
  there <- numbers[!is.na(numbers)]
  text <- sprintf("%.15g", there)
  for (digits in 16:17) {
    off <- as.numeric(text) != there
    text[off] <- sprintf(paste0("%.", digits, "g"), there[off])
  }
  all <- rep(NA_character_, length(numbers))
  all[!is.na(numbers)] <- tolower(text) # inf, as Python writes it
  all
}

write_csv <- function(table, path) {
  table[] <- lapply(table, text_of)
  utils::write.csv(table, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
}

schema_of <- function(table, synthesized) {
  columns <- lapply(names(table), function(name) {
    entry <- list(name = name, dtype = dtype_of(table[[name]], name))
    if (is.factor(table[[name]])) {
      entry$levels <- as.list(levels(table[[name]]))
      entry$ordered <- is.ordered(table[[name]])
    }
    entry$synthesized <- name %in% synthesized
    entry
  })
  list(file_format = "csv", index_names = list(), index = list(), columns = columns)
}

# A column of text in the type that its schema names.
typed <- function(text, entry) {
  dtype <- entry$dtype
  if (!is.null(entry$levels)) {
    return(factor(text, as.character(unlist(entry$levels)), ordered = isTRUE(entry$ordered)))
  }
  if (grepl("^(u?int)[0-9]+", dtype, ignore.case = TRUE)) {
    numbers <- as.numeric(text)
    fits <- all(is.na(numbers) | abs(numbers) <= .Machine$integer.max)
    return(if (fits) as.integer(numbers) else numbers)
  }
  if (grepl("^(float|double)", dtype, ignore.case = TRUE)) {
    return(as.numeric(text))
  }
  if (dtype %in% c("bool", "boolean")) {
    return(text == "True")
  }
  if (startsWith(dtype, "datetime")) {
    if (all(is.na(text) | nchar(text) == 10)) {
      return(as.Date(text))
    }
    return(as.POSIXct(sub("T", " ", sub("[+]00:00$|Z$", "", text)), tz = "UTC"))
  }
  text
}

read_table <- function(path, schema) {
  text <- utils::read.csv(
    path, colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8"
  )
  entries <- c(schema$index, schema$columns)
  if (ncol(text) != length(entries)) {
    invalid_input(path, " must have ", length(entries), " columns: found ", ncol(text))
  }
  names(text) <- vapply(entries, function(entry) entry$name, "")
  text[] <- Map(typed, text, entries)
  text
}

# --- JSON ----------------------------------------------------------------------------------------

write_json <- function(content, path) {
  text <- jsonlite::toJSON(content, auto_unbox = TRUE, null = "null", na = "null", digits = I(17),
                           pretty = TRUE)
  writeLines(text, path, useBytes = TRUE)
}

read_json <- function(path) {
  tryCatch(
    jsonlite::fromJSON(path, simplifyVector = FALSE),
    error = function(problem) invalid_input(path, " must be a file of a saved release: it is no JSON")
  )
}

# --- The two parts -------------------------------------------------------------------------------

write_public <- function(release, record, sets, folder) {
  dir.create(folder, mode = "0755")
  files <- file.path(folder, paste0("synthetic_", seq_along(sets), ".csv"))
  Map(write_csv, sets, files)
  write_json(schema_of(sets[[1]], release$outcome), file.path(folder, "schema.json"))
  charge <- release$charge
  spent <- if (record$accounting == "gaussian") {
    list(pure = 0, rho_of_pure = 0, rho = 0,
         mu = mu_of_release(record$accounts$gaussian$mu, record$n_draws_released, record$relation))
  } else {
    list(pure = charge$epsilon, rho_of_pure = NULL, rho = 0, mu = 0)
  }
  said <- statement_of(release, record)
  write_json(
    c(unclass(charge)[setdiff(names(charge), c("epsilon_gaussian", "refits"))], list(spent = spent),
      said[c("assumes", "not_covered")]),
    file.path(folder, "charge.json")
  )
  writeLines(said$text, file.path(folder, "privacy_statement.md"), useBytes = TRUE)
}

package_version_of <- function() {
  tryCatch(utils::packageVersion("pyhybrid"), error = function(missing) "0")
}

# Sentences of a statement, from public facts alone.
statement_of <- function(release, record) {
  charge <- release$charge
  columns <- paste(release$outcome, collapse = ", ")
  refits <- record$facts$refits
  assumes <- c(
    if (!is.null(refits)) paste0(
      "Sizes, ranges and deviations are taken over ", record$n_draws, " posterior draws, a lower ",
      "estimate of the largest possible ones."
    ),
    if (isTRUE(refits > 0)) paste0(
      "Everything was computed anew, weights too, without each of ", refits, " records: no other one is ",
      "assumed to tell much more."
    ),
    if (identical(as.double(refits), 0)) "As published: the weights are taken as fixed.",
    if (isTRUE(record$facts$clipped) && !isTRUE(record$facts$by_record)) paste0(
      "Weights were computed from the same database and are assumed not to change for its neighbors."
    ),
    if (record$converged) {
      "The sampler has converged."
    } else {
      "THE SAMPLER HAS NOT CONVERGED and the release was made anyway: epsilon may be too small."
    }
  )
  not_covered <- c(
    paste0("Columns other than ", columns, ", if there are any, are published unchanged."),
    paste0("The number of records, their order, and who is in the data: they are taken as public. The ",
           "guarantee hides values and their influence, not membership."),
    "A person with several rows costs so many times the epsilon stated here.",
    "The epsilon stated here: it was computed from the confidential data.",
    paste0("Choices made by looking at the data: ", record$facts$chosen,
           "; other releases from the same data, whose epsilons add up."),
    unlist(record$facts$not_covered)
  )
  change <- if (charge$relation == "remove") "presence" else "values"
  points <- function(sentences) paste0("- ", sentences, collapse = "\n")
  text <- paste(sep = "\n\n",
    "# Privacy statement",
    paste0("**", sub(" \\(.*", "", format(charge)), "** for ", charge$n_synthetic, " synthetic data set(s)",
           " together; kind: **", charge$kind, "**; neighbor relation: **", charge$relation,
           " one record**; mechanism: ", charge$mechanism, ". The column ", columns, " of ",
           nrow(release$synthetic[[1]]), " records was replaced by values drawn from a Bayesian model, each ",
           "set from a draw of its own."),
    "## What the number means",
    paste0("For two databases that differ in the ", change, " of one record, the probability of releasing ",
           "what was released differs by a factor of at most exp(epsilon)",
           if (charge$delta > 0) paste0(" and, beyond that, by at most delta = ", short(charge$delta)),
           ". The guarantee is local and asymptotic: epsilon was computed for this database from posterior ",
           "draws, and becomes a guarantee for all databases only as the number of records grows.",
           if (!is.na(charge$epsilon_published)) paste0(
             " As published, with the weights taken as fixed, epsilon would be ",
             format(charge$epsilon_published, digits = 15), "."
           )),
    "## Assumed", points(assumes), "## Not covered", points(not_covered),
    "## How it was made",
    points(c(
      paste0("Settings:", settings_in_words(release$settings[c("mechanism", "model", "formula")]), "."),
      if (release$seeded) {
        "A seed was set by hand, which must stay secret."
      } else {
        "Random numbers came from the operating system's entropy."
      }
    ))
  )
  list(assumes = as.list(assumes), not_covered = as.list(not_covered), text = text)
}

write_confidential <- function(release, record, folder) {
  dir.create(folder, mode = "0700")
  own <- release$confidential
  records <- data.frame(
    label = seq_along(own$alpha) - 1, alpha = own$alpha, lipschitz = unname(own$bounds$by_record)
  )
  write_csv(records, file.path(folder, "records.csv"))
  if (length(own$loss$record) > 0) {
    write_csv(data.frame(record = own$loss$record - 1, loss = own$loss$loss), file.path(folder, "refits.csv"))
  }
  fit <- own$weighted
  write_json(
    list(
      format = folder_format, pyhybrid = as.character(package_version_of()), charge = record,
      settings = release$settings, synthesized = as.list(release$outcome),
      predictors = as.list(release$predictors), diagnostics = diagnostics_of(fit, record, own$stored),
      requested = NULL, provenance = provenance_of(fit, own$stored), seeded = release$seeded,
      seed = format(own$seed, scientific = FALSE), reweighting_steps = list(), n_parts = 0,
      identifier = release$identifier, ledger = NULL
    ),
    file.path(folder, "run.json")
  )
}

# As the Python package stores them; those of a release that was read are kept.
diagnostics_of <- function(fit, record, stored) {
  if (is.null(fit)) {
    return(stored$diagnostics)
  }
  found <- fit$diagnostics
  size <- dim(fit$draws[[1]])
  deep <- fit$settings$max_treedepth
  list(
    max_rhat = found$rhat, min_ess_bulk = found$ess_bulk, min_ess_tail = found$ess_tail, worst = "",
    n_divergent = found$divergences,
    n_max_treedepth = if (is.null(deep)) 0 else sum(fit$sampler$treedepth >= deep),
    n_draws = prod(size[1:2]), n_chains = size[1], problems = record$facts$problems,
    rule = list(rhat = 1.01, ess_per_chain = 100, divergent_share = 0.001), attempts = 1,
    n_elsewhere = NULL
  )
}

provenance_of <- function(fit, stored) {
  if (is.null(fit)) {
    return(stored$provenance)
  }
  size <- dim(fit$draws[[1]])
  settings <- if (is.null(fit$settings)) list(chains = size[1], draws = size[2]) else fit$settings
  text <- if (is.null(fit$program)) "" else fit$program
  list(
    engine = fit$engine, engine_version = if (is.null(fit$version)) "" else fit$version,
    program = if (is.null(fit$name)) "" else fit$name, program_sha256 = sha256_of(text),
    seed = if (is.null(fit$seed)) 0 else fit$seed, settings = settings, seconds = 0, notes = list()
  )
}

sha256_of <- function(text) {
  if (!"sha256sum" %in% getNamespaceExports("tools")) {
    return("not computed by this version of R")
  }
  getExportedValue("tools", "sha256sum")(bytes = charToRaw(text))
}

#' @rdname write_release
#' @export
from_release <- function(path) {
  if (!is.character(path) || length(path) != 1 || !dir.exists(file.path(path, "public"))) {
    invalid_input("path must be a folder of a release, with public/ in it: it is not")
  }
  public <- file.path(path, "public")
  charge <- read_json(file.path(public, "charge.json"))
  schema <- read_json(file.path(public, "schema.json"))
  if (!identical(schema$file_format, "csv")) {
    invalid_input("the release must be of CSV files: found ", show_value(schema$file_format),
                  "; pyhybrid synthesize writes CSV where it reads CSV: give it such a file, or save ",
                  "the release with file_format=\"csv\"; arrow::read_parquet() reads the tables of public/")
  }
  files <- file.path(public, paste0("synthetic_", seq_len(charge$n_synthetic), ".csv"))
  if (!all(file.exists(files))) invalid_input("path must hold ", length(files), " tables: some are not there")
  made <- vapply(schema$columns, function(column) isTRUE(column$synthesized), TRUE)
  own <- read_confidential(file.path(path, "confidential"))
  run <- own$stored
  new_release(
    synthetic = lapply(files, read_table, schema), charge = charge_read(charge, run),
    settings = if (is.null(run)) list() else run$settings,
    outcome = vapply(schema$columns[made], function(column) column$name, ""),
    predictors = as.character(unlist(run$predictors)), seeded = isTRUE(run$seeded),
    identifier = run$identifier, confidential = own
  )
}

charge_read <- function(charge, run) {
  wanted <- c("epsilon_published", "epsilon_lipschitz", "epsilon_range", "mu")
  for (name in wanted) if (is.null(charge[[name]])) charge[[name]] <- NA_real_
  refits <- run$charge$facts$refits
  at <- run$settings$delta
  gaussian <- if (is.null(run$charge) || is.null(at)) NA_real_ else epsilon_by(run$charge, "gaussian", at)
  structure(
    c(charge, list(
      epsilon_gaussian = gaussian, refits = if (is.null(refits)) NA_real_ else refits
    )),
    class = "pyhybrid_charge"
  )
}

read_confidential <- function(folder) {
  if (!dir.exists(folder)) {
    return(list())
  }
  run <- read_json(file.path(folder, "run.json"))
  if (!identical(as.double(run$format), folder_format)) {
    invalid_input("path must hold a release of format ", folder_format, ": found ", show_value(run$format))
  }
  records <- utils::read.csv(file.path(folder, "records.csv"), colClasses = "character")
  own <- list(charge = run$charge, seed = run$seed, stored = run)
  if ("alpha" %in% names(records)) {
    own$alpha <- as.numeric(records$alpha)
    by_record <- as.numeric(records$lipschitz)
    own$bounds <- new_lipschitz_bounds(by_record, run$charge$bound, rep(TRUE, run$charge$n_draws),
                                       run$charge$draw_quantile, own$alpha)
  }
  refits <- file.path(folder, "refits.csv")
  if (file.exists(refits)) {
    found <- utils::read.csv(refits, colClasses = "character")
    own$loss <- list(record = as.integer(found$record) + 1L, loss = as.numeric(found$loss))
  }
  own
}
