"""DeepSpeed ZeRO stage 3 under the worker protocol: fsdpmark_adapter/deepspeed.py and deepspeed_stages.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from fsdpmark_adapter.deepspeed_stages import Zero3
from fsdpmark_adapter.worker import serve


class DeepSpeedZero3(Zero3):
    implementation = "deepspeed-zero3"


if __name__ == "__main__":
    serve(DeepSpeedZero3)
