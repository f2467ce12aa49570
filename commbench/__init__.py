"""commbench measures collective communication, fits it, and says which node or link is slow."""

__version__ = "0.1.0"
