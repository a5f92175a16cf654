"""Public names of primitives, loaded when they are first used."""

from .kmeans import NoisyCenters as NoisyCenters
from .kmeans import dp_kmeans as dp_kmeans
from .laplace import LaplaceAnswer as LaplaceAnswer
from .laplace import laplace_counts as laplace_counts
from .laplace import laplace_histogram as laplace_histogram
from .laplace import laplace_mean as laplace_mean
from .laplace import laplace_sum as laplace_sum
from .laplace import laplace_vector as laplace_vector
from .noise import PrivateAnswer as PrivateAnswer
from .selection import NoisyChoice as NoisyChoice
from .selection import RandomizedResponse as RandomizedResponse
from .selection import exponential_mechanism as exponential_mechanism
from .selection import randomized_response as randomized_response

__all__: list[str]
