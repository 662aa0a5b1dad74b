"""What a rank answers, without any framework: one line of JSON per event, and files that appear only when whole."""

import json
import math
import os


def number(value):
    """A float as JSON: non-finite ones are strings, since JSON has no word for them."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class Events:
    def __init__(self, case_folder, rank):
        self.folder = os.path.join(case_folder, "out")
        self.file = open(os.path.join(self.folder, f"rank{rank}.jsonl"), "a", encoding="utf-8")
        self.rank = rank

    def event(self, event, **fields):
        fields = {name: number(value) if isinstance(value, float) else value for name, value in fields.items()}
        self.file.write(json.dumps({"event": event, **fields}) + "\n")
        self.file.flush()

    def publish(self, label, rank, write):
        """LABEL.safetensors, or a rank's own LABEL.rank<R>.safetensors, as write(path) makes it, then its event."""
        name = f"{label}.safetensors" if rank is None else f"{label}.rank{rank}.safetensors"
        path = os.path.join(self.folder, name)
        write(path + ".tmp")
        os.replace(path + ".tmp", path)
        self.event("observed", label=label, file=name)

    def close(self):
        self.file.close()
