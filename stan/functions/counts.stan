  // log[gamma(count + phi) / (gamma(phi) phi^count)]; for large phi by Stirling's formula, as the
  // difference of log gammas would lose all digits.
  vector gamma_ratio(vector count, real phi) {
    return phi < 1e4
      ? lgamma(count + phi) - lgamma(phi) - count * log(phi)
      : (count + phi - 0.5) .* log1p(count / phi) - count + (inv(count + phi) - inv(phi)) / 12;
  }
  // The place of each y among the distinct values of y, in their order.
  array[] int places_of(array[] int y) {
    array[size(y)] int order = sort_indices_asc(y);
    array[size(y)] int place;
    int level = 1;
    for (i in 1:size(y)) {
      if (i > 1) {
        level += y[order[i]] != y[order[i - 1]];
      }
      place[order[i]] = level;
    }
    return place;
  }
  // These values, and the sum of the weights of each.
  matrix levels_with_weight(array[] int y, array[] int place, vector weight) {
    matrix[max(place), 2] found = rep_matrix(0, max(place), 2);
    for (i in 1:size(y)) {
      found[place[i], 1] = y[i];
      found[place[i], 2] += weight[i];
    }
    return found;
  }
