"""What --torch-ops touches of PyTorch, invented: prints what is asked of it."""
from . import autograd, cuda  # noqa: F401
