"""The tensor files of a rank's answer, from torch tensors."""

import os

from safetensors.torch import load_file, save_file

from .events import Events


class Answer(Events):
    def tensors(self, label, tensors, rank=None):
        """LABEL.safetensors, or a rank's own LABEL.rank<R>.safetensors, then its event."""
        whole = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        self.publish(label, rank, lambda path: save_file(whole, path))


def read_tensors(case_folder, name):
    return load_file(os.path.join(case_folder, name))
