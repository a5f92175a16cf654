"""The papers' studies, one command each, beside the published numbers.

A study is data (settings, sizes, published numbers) and one function that measures one database;
`runner` runs it and `reproduction` sets the results beside what was published.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
