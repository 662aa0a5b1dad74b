"""A small stand-in for torch.cuda on a machine without a GPU, for frameworks that ask it at import or start only.

    note = cuda_stand_in.install()    # before the framework is imported; NOTE goes into hello.note

Tensors stay on the CPU, where each operation is finished when its call returns. So a stream is an order that already holds and an
event one that has happened: waiting for either is nothing. The stand-in refuses where torch.cuda.is_available(). What it puts in, and who asks:

    current_device                   Megatron-FSDP, MegatronFSDP.__init__; Megatron-Core, DDP and pipeline buffers
    Stream, Event, current_stream,   FairScale, _rebuild_full_params and _post_backward_hook; Megatron-FSDP, GradReducePipeline and AllGatherPipeline; Megatron-Core,
    stream, synchronize              DistributedDataParallel, the bucket groups and the pipeline's schedules
    get_rng_state, set_rng_state     Megatron-Core, tensor_parallel/random.py (the default generator of the CPU has both)
    Tensor.record_stream             FairScale, _post_backward_hook and _free_full_params
    Tensor.cuda                      FairScale, clip_grad_norm_; Megatron-FSDP, validate_uneven_dtensor; Megatron-Core, clip_grads.py and DistributedOptimizer
    device "cuda" -> "cpu"           Megatron-Core, tensors made with device="cuda" or torch.cuda.current_device() (`CudaToCpu`)
    Tensor.type() as of a GPU        Megatron-Core, DistributedOptimizer and clip_grad_by_total_norm_fp32 (`CudaToCpu`)
    ReduceOp PREMUL_SUM over gloo    Megatron-FSDP, gradient_reduce_preprocessing

The last one is a collective: NCCL multiplies each rank's input by the factor, in the input's dtype, and then adds. gloo knows no such
operation (ProcessGroupGloo: "Cannot use ReduceOp.PREMUL_SUM with Gloo"), so here the input is multiplied first and SUM follows. Nothing else changes a value.
"""

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

NOTE = "on CPU through a stand-in for torch.cuda"


class Stream:
    """An order of operations, all of them finished."""

    device = torch.device("cpu")
    entered = []  # the current one last, as "with torch.cuda.stream(s)" makes it

    def __init__(self, *_, **__):
        pass

    def wait_stream(self, stream):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        return event or Event()

    def synchronize(self):
        pass

    def query(self):
        return True

    def __enter__(self):
        Stream.entered.append(self)
        return self

    def __exit__(self, *_):
        Stream.entered.pop()


class Event:
    """Something that has happened."""

    def __init__(self, *_, **__):
        pass

    def record(self, stream=None):
        pass

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True


class CudaToCpu(TorchFunctionMode):
    """Functions asked to make a tensor on a CUDA device make it on the CPU; an integer device is a CUDA device's number. A tensor's
    type() says what it would say on a GPU, for those who compare it with "torch.cuda.FloatTensor"."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        device = keywords.get("device")
        if isinstance(device, int) or (device is not None and torch.device(device).type == "cuda"):
            keywords = {**keywords, "device": "cpu"}
        result = function(*arguments, **keywords)
        asked_type = function is torch.Tensor.type and len(arguments) == 1 and not keywords
        return result.replace("torch.", "torch.cuda.", 1) if asked_type else result


class PremulSum:
    """What _make_nccl_premul_sum returns here: the factor, until the collective."""

    def __init__(self, factor):
        self.factor = factor


def premultiplied(collective, position):
    """The collective, with PREMUL_SUM as a product, of a copy of its input at `position`, and SUM. all_reduce works in place."""

    def call(*arguments, **keywords):
        operation = keywords.get("op")
        if not isinstance(operation, PremulSum):
            return collective(*arguments, **keywords)
        arguments, keywords = list(arguments), {**keywords, "op": dist.ReduceOp.SUM}
        if collective.__name__ == "all_reduce":
            arguments[0].mul_(operation.factor)
        elif "input" in keywords:
            keywords["input"] = keywords["input"] * operation.factor
        else:
            arguments[position] = arguments[position] * operation.factor
        return collective(*arguments, **keywords)

    return call


def replacements():
    """(owner, name, what takes its place)"""
    here = Stream()
    return [
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "Stream", Stream),
        (torch.cuda, "Event", Event),
        (torch.cuda, "current_stream", lambda device=None: Stream.entered[-1] if Stream.entered else here),
        (torch.cuda, "default_stream", lambda device=None: here),
        (torch.cuda, "stream", lambda stream: stream or here),
        (torch.cuda, "synchronize", lambda device=None: None),
        (torch.cuda, "get_rng_state", lambda device=None: torch.get_rng_state()),
        (torch.cuda, "set_rng_state", lambda state, device=None: torch.set_rng_state(state)),
        (torch.Tensor, "record_stream", lambda tensor, stream: None),
        (torch.Tensor, "cuda", lambda tensor, *_, **__: tensor),
        (dist, "_make_nccl_premul_sum", PremulSum),
        (dist, "all_reduce", premultiplied(dist.all_reduce, 0)),
        (dist, "reduce_scatter_tensor", premultiplied(dist.reduce_scatter_tensor, 1))]


def install():
    """Puts the stand-in in and returns the note; returns "" and changes nothing where there is a GPU."""
    if torch.cuda.is_available():
        return ""
    if torch.cuda.Stream is not Stream:
        for owner, name, value in replacements():
            setattr(owner, name, value)
    return NOTE
