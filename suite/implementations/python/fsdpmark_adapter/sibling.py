"""The adapters beside this package, found by the name of their implementation: to derive from, or to run."""

import importlib.util
from pathlib import Path

from .job import InputError
from .subject import Subject


def adapter(name):
    """The module suite/implementations/NAME/adapter.py. Its name is the implementation's, so it serves nothing."""
    path = Path(__file__).resolve().parents[2] / name / "adapter.py"
    if not path.exists():
        raise InputError(f"implementation: found {name!r}, expected a folder with an adapter.py beside {path.parents[1]}")
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def subject_class(name):
    """The adapter's own Subject, not one that it derives from."""
    module = adapter(name)
    return next(c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Subject) and c.__module__ == module.__name__)
