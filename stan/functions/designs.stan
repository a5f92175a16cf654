  // Place among the runs of equal consecutive rows of X, by row.
  array[] int run_of(matrix X) {
    array[rows(X)] int run = rep_array(1, rows(X));
    for (i in 2:rows(X)) {
      run[i] = run[i - 1] + (squared_distance(X[i], X[i - 1]) > 0);
    }
    return run;
  }
