  // Location and scale of the reparametrization; the posterior does not depend on them.
  matrix[K, K] information_root;
  vector[K] score;
