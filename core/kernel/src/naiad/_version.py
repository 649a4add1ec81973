"""The version of the distribution `naiad`, for those that the package root is made of."""

__version__ = "0.1.0"
