# A brms model for the Python package: two files.

#' Files of a 'brms' model for the 'Python' package
#'
#' Writes the 'Stan' program and the data of a model fitted by 'brms' where `ph.models.from_brms()` of the
#' 'Python' package reads them. The model must have been made with `y | weights(w)`, w a column of
#' ones: the mechanisms put their weights in its place.
#'
#' @param fit A `brmsfit`, also one that was not sampled (`chains = 0`), or a list of `stancode`
#'   (a text) and `standata` (a named list), as `brms::make_stancode()` and `brms::make_standata()`
#'   give them.
#' @param folder Folder for `model.stan` and `standata.json`, made if it is not there. The data
#'   are confidential: `standata.json` holds the outcome and the design of every record.
#' @param overwrite Replace files that are there?
#' @return The paths of both files, invisibly: `c(stancode = , standata = )`.
#' @examples
#' if (requireNamespace("jsonlite", quietly = TRUE)) {
#'   made <- list(
#'     stancode = "data { int N; vector[N] Y; vector[N] weights; }",
#'     standata = list(N = 2L, Y = array(c(1.5, 2)), weights = array(c(1, 1)))
#'   )
#'   as_pyhybrid(made, tempfile())
#' }
#' @export
as_pyhybrid <- function(fit, folder, overwrite = FALSE) {
  if (!requireNamespace("jsonlite", quietly = TRUE)) {
    engine_unavailable("as_pyhybrid needs the package jsonlite: install.packages(\"jsonlite\")")
  }
  parts <- brms_parts(fit)
  data <- parts$standata
  missing <- setdiff(c("N", "Y", "weights"), names(data))
  if (length(missing) > 0) {
    invalid_input("standata must have N, Y and weights: it has no ", missing[1],
                  "; give brms a formula with y | weights(w), w a column of ones")
  }
  other <- which(is.na(data$weights) | data$weights != 1)
  if (length(other) > 0) {
    invalid_input("weights of the brms model must all be 1, as terms must not be weighted twice: ",
                  "record ", other[1], " has another")
  }
  if (!is.character(folder) || length(folder) != 1 || is.na(folder)) {
    invalid_input("folder must be one path")
  }
  files <- file.path(folder, c(stancode = "model.stan", standata = "standata.json"))
  names(files) <- c("stancode", "standata")
  there <- files[file.exists(files)]
  if (length(there) > 0 && !isTRUE(overwrite)) {
    invalid_input(there[1], " must not be there yet; give overwrite = TRUE to replace it")
  }
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  writeLines(parts$stancode, files[["stancode"]], useBytes = TRUE)
  writeLines(standata_json(data), files[["standata"]], useBytes = TRUE)
  invisible(files)
}

# Program and data of a brmsfit, or of a list of both.
brms_parts <- function(fit) {
  if (inherits(fit, "brmsfit")) {
    if (!nzchar(system.file(package = "brms"))) {
      engine_unavailable("the data of a brmsfit need the package brms; or give ",
                         "list(stancode = , standata = )")
    }
    of_brms <- function(name) getExportedValue("brms", name) # optional, as cmdstanr is
    fit <- list(stancode = of_brms("stancode")(fit), standata = of_brms("standata")(fit))
  }
  text <- if (is.list(fit)) fit$stancode
  if (!is.character(text) || length(text) != 1 || !is.list(fit$standata)) {
    invalid_input("fit must be a brmsfit, or a list of stancode, a text, and standata, a list")
  }
  list(stancode = as.character(text), standata = unclass(fit$standata))
}

# Scalars stay scalars and arrays of one element arrays, which Stan tells apart; matrices by rows.
standata_json <- function(data) {
  plain <- lapply(data, function(own) {
    if (is.null(dim(own)) && length(own) == 1) {
      return(jsonlite::unbox(as.numeric(own)))
    }
    if (is.null(dim(own))) as.numeric(own) else array(as.numeric(own), unname(dim(own)))
  })
  jsonlite::toJSON(plain, digits = NA, matrix = "rowmajor")
}
