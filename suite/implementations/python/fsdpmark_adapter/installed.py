"""Prints the versions of what an implementation loads, or what is missing with exit status 1.

    installed.py [PACKAGE...]      beside torch, numpy and safetensors
    installed.py --only PACKAGE... these alone

Run by path, not as a module: it must answer in milliseconds and without importing a framework.
"""

import sys
from importlib.metadata import PackageNotFoundError, version

packages = sys.argv[1:]
if packages[:1] == ["--only"]:
    packages = packages[1:]
else:
    packages = ["torch", "numpy", "safetensors", *packages]
try:
    lines = [f"python {sys.version.split()[0]}", *(f"{package} {version(package)}" for package in packages)]
except PackageNotFoundError as missing:
    print(f"Python package {missing.name or missing} is not installed")
    sys.exit(1)
print("\n".join(lines))
