"""What a rank answers: one line of JSON per event, and tensor files that appear only when whole."""

import json
import math
import os

from safetensors.torch import load_file, save_file


def number(value):
    """A float as JSON: non-finite ones are strings, since JSON has no word for them."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class Answer:
    def __init__(self, case_folder, rank):
        self.folder = os.path.join(case_folder, "out")
        self.file = open(os.path.join(self.folder, f"rank{rank}.jsonl"), "a", encoding="utf-8")
        self.rank = rank

    def event(self, event, **fields):
        fields = {name: number(value) if isinstance(value, float) else value for name, value in fields.items()}
        self.file.write(json.dumps({"event": event, **fields}) + "\n")
        self.file.flush()

    def tensors(self, label, tensors, rank=None):
        """LABEL.safetensors, or a rank's own LABEL.rank<R>.safetensors, then its event."""
        name = f"{label}.safetensors" if rank is None else f"{label}.rank{rank}.safetensors"
        path = os.path.join(self.folder, name)
        save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, path + ".tmp")
        os.replace(path + ".tmp", path)
        self.event("observed", label=label, file=name)

    def close(self):
        self.file.close()


def read_tensors(case_folder, name):
    return load_file(os.path.join(case_folder, name))
