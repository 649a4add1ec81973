"""The version of the distribution `naiad`: a leaf, which modules below the package root can import."""

__version__ = "0.1.0"
