"""What a release tells: bounds, risks, weights, charges, from arrays with pencil and paper.

Numpy and scipy only; every function names its equation, and these are the papers' names. All raise
`InvalidInput` for an argument that is not as its description says: a wrong shape, NaN, a weight or
a probability outside of its range, draws that do not split into the chains.

References
----------
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37.
[V25] Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms.
[H22] Hu, Savitsky, Williams (2022), JSSAM 10:1370-1399.
[C25] Hu, Williams, Savitsky (2025), Statistica Sinica 35:563-584.
[MT07] McSherry, Talwar (2007), the exponential mechanism.
[DR19] Durfee, Rogers (2019), Practical differentially private top-k selection with pay-what-you-get
composition, NeurIPS: mechanisms of bounded range.
[CR21] Cesar, Rogers (2021), Bounding, concentrating, and truncating: unifying privacy loss
composition for data analytics, ALT: bounded range and zCDP.
[BS16] Bun, Steinke (2016), Concentrated differential privacy: simplifications, extensions, and
lower bounds, TCC.
[CKS20] Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.
[DRS22] Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37.
[CP34] Clopper, Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
the binomial, Biometrika 26:404-413.
[B76] Bennett (1976), Efficient estimation of free energy differences from Monte Carlo data,
Journal of Computational Physics 22:245-268.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
