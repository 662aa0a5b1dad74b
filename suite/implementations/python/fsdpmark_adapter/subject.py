"""The interface of an adapter: how its framework wraps a model, and what each rank then holds.

`Subject` is also a whole adapter, of the plain unwrapped model: what every implementation runs for
strategy none at N = 1. An adapter overrides what its framework does otherwise, and nothing more.
What a framework cannot do is said by `unsupported`, before anything is started; what it does
differently is not touched, so that the checks see it.
"""

import os
from contextlib import nullcontext
from fnmatch import fnmatchcase

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.func import functional_call

from . import models

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
STATE_KEYS = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "momentum": "momentum_buffer"}


def word(flag):
    return "true" if flag else "false"


class Subject:
    implementation = "pytorch"
    version = torch.__version__
    note = ""  # a remark for hello
    axes = ()  # "tensor", "pipeline": what it can combine with the sharding
    state_options = None  # StateDictOptions of checkpoints
    options = {}  # name -> type of the implementation options that it knows

    def __init__(self, case, world):
        self.case, self.world = case, world
        self.compute = DTYPES[case.precision.compute]
        self.model = self.optimizer = self.scaler = None
        self.ends_step = True  # whether no other microbatch follows before the optimizer's step
        self.unscaled = False  # whether this step's gradients are the real ones already
        self.parameters = {}  # name in the table -> the tensor that the optimizer updates

    # ---- what it cannot do ----
    @classmethod
    def unsupported(cls, case):
        """The reason why this case cannot be run as it is meant, or None."""
        for axis in ("tensor", "pipeline"):
            if getattr(case.sharding, axis) > 1 and axis not in cls.axes:
                return f"this adapter has no {axis} parallelism"
        if case.precision.optimizer_state != case.precision.parameter:
            return "torch.optim keeps its state in the parameters' dtype"
        if case.sharding.strategy == "none" and case.world_size == 1:
            return None
        return cls.unsupported_sharded(case)

    @classmethod
    def unsupported_sharded(cls, case):
        return "the plain model trains on one rank only"

    # ---- wrapping ----
    def build(self, initial):
        """Model, wrapper and optimizer, ready to train."""
        model = self.make_model(initial)
        self.model = model if self.plain else self.wrap(model)
        self.parameters = self.named_parameters()
        self.optimizer = self.make_optimizer()
        self.scaler = self.make_scaler()

    def make_model(self, initial):
        """The model as the case gives it, with activation checkpointing where it asks for it."""
        model = models.build(self.case, initial, DTYPES[self.case.precision.parameter], self.world.device)
        if self.case.sharding.activation_checkpointing:
            self.checkpoint_blocks(model)
        return model

    def checkpoint_blocks(self, model):
        for unit in models.units(self.case):
            parent, _, leaf = unit.rpartition(".")
            holder = model.get_submodule(parent)
            setattr(holder, leaf, checkpoint_wrapper(holder.get_submodule(leaf)))

    @property
    def plain(self):
        return self.case.sharding.strategy == "none" and self.case.world_size == 1

    def wrap(self, model):
        raise NotImplementedError

    def unit_names(self):
        """The blocks that this rank has, in table order."""
        return models.units(self.case)

    def wrap_groups(self, model):
        """The FSDP units of the wrapping policy: lists of blocks, each list one unit; the root is not among them."""
        wrap = self.case.sharding.wrap
        modules = [(name, model.get_submodule(name)) for name in self.unit_names()]
        if wrap.policy == "root":
            return []
        if wrap.policy == "pattern":
            return [[module] for name, module in modules if fnmatchcase(name, wrap.pattern)]
        if wrap.policy == "block":
            return [[module] for _, module in modules]
        groups, size = [[]], 0
        for _, module in modules:
            if size >= wrap.min_parameters:
                groups.append([])
                size = 0
            groups[-1].append(module)
            size += sum(p.numel() for p in module.parameters())
        return [group for group in groups if group]

    def option(self, name, default):
        """An implementation option of the manifest or the case, in its type."""
        if name not in self.case.options:
            return default
        kind, text = self.options[name], self.case.options[name]
        return text == "true" if kind is bool else kind(text)

    def named_parameters(self):
        return {models.clean(name): p for name, p in self.model.named_parameters()}

    def make_optimizer(self):
        spec = self.case.optimizer
        decays = {p.name: p.decay for p in self.case.parameters}
        groups = [{"params": list(self.parameters.values()), "weight_decay": spec.weight_decay}]
        if spec.no_decay:
            groups = [{"params": [p for name, p in self.parameters.items() if decays[name] == decay],
                       "weight_decay": spec.weight_decay if decay else 0.0} for decay in (True, False)]
            groups = [group for group in groups if group["params"]]
        if spec.kind == "sgd":
            return self.optimizer_class(torch.optim.SGD)(groups, lr=spec.lr, momentum=spec.momentum)
        return self.optimizer_class(torch.optim.AdamW)(groups, lr=spec.lr, betas=(spec.beta1, spec.beta2), eps=spec.eps)

    def optimizer_class(self, kind):
        """What makes the optimizer of a torch.optim class."""
        return kind

    def make_scaler(self):
        scale = self.case.precision.loss_scale
        if scale.mode == "none":
            return None
        dynamic = {"growth_factor": scale.growth, "backoff_factor": scale.backoff, "growth_interval": scale.interval}
        return self.scaler_class()(device=self.world.device.type, init_scale=scale.initial,
                                   **(dynamic if scale.mode == "dynamic" else {}))

    def scaler_class(self):
        return torch.amp.GradScaler

    # ---- training ----
    def forward(self, inputs, extra):
        """The weighted sum of the rank's losses. The plain model of mixed precision casts its
        parameters itself, and autograd casts the gradients back."""
        dtype = DTYPES[self.case.precision.parameter]
        if self.plain and self.compute != dtype:
            cast = {name: p.to(self.compute) for name, p in self.model.named_parameters()}
            return functional_call(self.model, cast, (inputs, extra))
        return self.model(inputs, extra)

    def loss(self, batches, step, micro):
        """What the rank differentiates of one microbatch."""
        inputs, extra = batches.at(step, micro, self.compute)
        return self.forward(inputs, extra) * batches.scale(step, micro)

    def communication(self, sync):
        """The context of a forward and its backward; without sync gradients stay on the rank."""
        return nullcontext()

    def backward(self, loss):
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def unscale(self):
        """Takes the loss scale out of the gradients, once a step."""
        if self.scaler and not self.unscaled:
            self.scaler.unscale_(self.optimizer)
            self.unscaled = True

    def step(self):
        """The optimizer's step: (whether it was skipped, the loss scale that its gradients were made with)."""
        if not self.scaler:
            self.optimizer.step()
            return False, 1.0
        scale = self.scaler.get_scale()
        skipped = any(float(f) for f in self.scaler._per_optimizer_states[id(self.optimizer)]["found_inf_per_device"].values())
        self.scaler.step(self.optimizer)
        self.scaler.update(scale if self.case.precision.loss_scale.mode == "static" else None)
        self.unscaled = False
        return skipped, scale

    def zero_grad(self):
        self.optimizer.zero_grad()

    def clip(self, norm, limit):
        """Clips by the global norm and returns it."""
        return float(torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), limit, norm_type=float(norm)))

    def require_grad(self, pattern, wanted):
        for name, p in self.parameters.items():
            if fnmatchcase(name, pattern):
                p.requires_grad_(wanted)

    # ---- checkpoints: torch's own, which reshards to another number of ranks ----
    def checkpoint(self):
        model, optimizer = get_state_dict(self.model, self.optimizer, options=self.state_options)
        return {"model": model, "optimizer": optimizer}

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        dcp.save(self.checkpoint(), checkpoint_id=folder)

    def load(self, folder):
        state = self.checkpoint()
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"],
                       options=self.state_options)

    # ---- what is held ----
    def configured(self):
        """What was really set, read from the framework's objects where they tell."""
        p = next(iter(self.parameters.values()))
        return {"strategy": "none", "mesh": "1x1", "parameter": DTYPE_NAMES[p.dtype], "compute": DTYPE_NAMES[self.compute],
                "optimizer_state": DTYPE_NAMES[p.dtype], "offload": "none", **self.configured_checkpointing()}

    def configured_checkpointing(self):
        wrapped = any("_checkpoint_wrapped_module" in name for name, _ in self.model.named_modules())
        return {"activation_checkpointing": word(wrapped)}

    def held(self, name):
        """What this rank holds of the parameter, in elements of the whole: (offset, length), or a list of such
        ranges in the order in which `local` has them."""
        return 0, self.parameters[name].numel()

    def part(self, name, what):
        """(offset, length) of the part of one kind of tensor: what `local` gives."""
        return self.held(name)

    def state(self, p):
        """What the optimizer keeps for a parameter."""
        return self.optimizer.state.get(p, {})

    def local(self, name, what):
        """The rank's own part of a tensor (count), without communication; None where there is none."""
        p = self.parameters[name]
        if what == "param":
            tensor = p
        elif what in ("grad", "clipped"):
            tensor = p.grad
        else:
            tensor = self.state(p).get(STATE_KEYS[what])
        return None if tensor is None else self.flatten(tensor.detach())

    def flatten(self, tensor):
        return tensor.reshape(-1)

    def padding(self, of):
        """(elements held beyond the tensors themselves, the largest absolute value among them), of "parameter",
        "gradient" or "optimizer"."""
        return 0, 0.0
