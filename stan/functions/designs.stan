  // Place among the runs of equal consecutive rows of X, by row.
  array[] int run_of(matrix X) {
    array[rows(X)] int run = rep_array(1, rows(X));
    for (i in 2:rows(X)) {
      run[i] = run[i - 1] + (squared_distance(X[i], X[i - 1]) > 0);
    }
    return run;
  }
  // Place of each row among the distinct rows of X. Equal rows that rounding parts in the order have
  // a place each, which costs time alone.
  array[] int places_of_rows(matrix X) {
    vector[rows(X)] key = rep_vector(0, rows(X));
    array[rows(X)] int order;
    array[rows(X)] int place;
    for (k in 1:cols(X)) {
      key += sin(k) * col(X, k);
    }
    order = sort_indices_asc(key);
    place[order] = run_of(X[order]);
    return place;
  }
