  // log[gamma(count + phi) / (gamma(phi) phi^count)]; for large phi by Stirling's formula, as the
  // difference of log gammas would lose all digits.
  vector gamma_ratio(vector count, real phi) {
    return phi < 1e4
      ? lgamma(count + phi) - lgamma(phi) - count * log(phi)
      : (count + phi - 0.5) .* log1p(count / phi) - count + (inv(count + phi) - inv(phi)) / 12;
  }
  int number_of_levels(array[] int y) {
    array[size(y)] int sorted = sort_asc(y);
    int found = 1;
    for (i in 2:size(y)) {
      found += sorted[i] != sorted[i - 1];
    }
    return found;
  }
  // The distinct values of y, and the sum of the weights of each.
  matrix levels_with_weight(array[] int y, vector weight, int n_levels) {
    array[size(y)] int order = sort_indices_asc(y);
    matrix[n_levels, 2] found = rep_matrix(0, n_levels, 2);
    int level = 0;
    for (i in 1:size(y)) {
      if (level == 0 || y[order[i]] != found[level, 1]) {
        level += 1;
        found[level, 1] = y[order[i]];
      }
      found[level, 2] += weight[order[i]];
    }
    return found;
  }
