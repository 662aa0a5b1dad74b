"""Prints the versions of what the PyTorch implementations load, or what is missing with exit status 1.

Run by path, not as a module: it must answer in milliseconds and without importing torch.
"""

import sys
from importlib.metadata import PackageNotFoundError, version

try:
    print("python", sys.version.split()[0])
    for package in ("torch", "numpy", "safetensors"):
        print(package, version(package))
except PackageNotFoundError as missing:
    print(f"Python package {missing.name or missing} is not installed")
    sys.exit(1)
