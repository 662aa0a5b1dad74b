"""The four ZeRO stages of DeepSpeed: what each rank holds of a parameter, of its gradient and of its optimizer state.

    Zero0   nothing is sharded: the engine averages gradients by all-reducing them
    Zero1   optimizer state. A parameter group is concatenated, padded to a multiple of 2 N and cut equally
    Zero2   the same, gradients too
    Zero3   parameters too: each by itself, as N pieces of ceil(numel / N) elements of its flattened data

Parameters are observed where a step changes them first: in mixed precision the float32 masters, which lie where the optimizer state lies;
in float32 what the model computes with (stages 1 and 2: whole on every rank, gathered after the step). Everything is read locally.
"""

import deepspeed.comm
from deepspeed.utils import groups

from .deepspeed import DeepSpeed
from .subject import STATE_KEYS


class Zero0(DeepSpeed):
    stage, strategy = 0, "none"

    @classmethod
    def unsupported_stage(cls, case):
        if case.sharding.offload != "none":
            return "DeepSpeed offloads with ZeRO only"
        return None

    def communication(self, sync):
        context = super().communication(sync)
        if not self.plain and sync:
            self.engine.set_gradient_accumulation_boundary(True)  # the boundary is what makes it communicate
        return context

    def load(self, folder):
        """Checkpoints without ZeRO are whole, and do not depend on the number of ranks."""
        self.world.barrier()
        self.engine.load_checkpoint(folder, tag=None) if not self.plain else super().load(folder)

    def loads_from_elsewhere(self):
        return False

    def updated(self, name):
        """The tensor that the optimizer updates: in bf16 and fp16 a float32 copy."""
        p = self.parameters[name]
        if not self.mixed:
            return p
        wrapped = self.engine.optimizer
        for low, high in zip(wrapped.fp16_groups, wrapped.fp32_groups):
            for a, b in zip(low, high):
                if a is p:
                    return b
        raise RuntimeError(f"{name} has no master")

    def local(self, name, what):
        if self.plain:
            return super().local(name, what)
        p, master = self.parameters[name], self.updated(name)
        if what == "param":
            tensor = master
        elif what == "grad":
            tensor = None if p.grad is None else self.unscaled_gradient(p.grad)
        elif what == "clipped":
            tensor = self.seen.get(id(master))
        else:
            tensor = self.base.state.get(master, {}).get(STATE_KEYS[what])
        return None if tensor is None else tensor.detach().reshape(-1)


class Partitioned(DeepSpeed):
    """Stages 1 and 2."""
    offloads = ("optimizer",)
    accumulates = ("f32",)

    def updates(self, name):
        mapping = self.parameters[name]._hp_mapping
        return (mapping.lp_fragment_address.start, mapping.lp_fragment_address.numel) if mapping else (0, 0)

    def part(self, name, what):
        if self.plain or (what == "param" and not self.mixed):
            return self.held(name)
        return self.updates(name)

    def flats(self):
        """The rank's pieces of the groups' masters."""
        wrapped = self.engine.optimizer
        return wrapped.single_partition_of_fp32_groups if hasattr(wrapped, "single_partition_of_fp32_groups") else wrapped.fp32_groups_flat_partition

    def local(self, name, what):
        if self.plain or (what == "param" and not self.mixed):
            return super().local(name, what)
        p = self.parameters[name]
        mapping = p._hp_mapping
        if mapping is None:
            return None
        if what == "param":
            return mapping.hp_fragment.detach()
        if what == "grad":
            return self.reduced(p, mapping)
        flat = self.flats()[mapping.param_group_index]
        whole = self.seen.get(id(flat)) if what == "clipped" else self.base.state.get(flat, {}).get(STATE_KEYS[what])
        address = mapping.hp_fragment_address
        return None if whole is None else whole.narrow(0, address.start, address.numel)

    def reduced(self, p, mapping):
        """The rank's piece of the averaged gradient, as it waits for the step."""
        grads = mapping.offload_gradient_dict if mapping.use_offload else mapping.gradient_dict
        if grads.get(mapping.param_group_index) is None:
            if not mapping.use_offload:
                return None
            self.engine.optimizer._get_offload_gradient_dict()
        piece = mapping.get_lp_grad_fragment(p._index_in_param_group).detach().reshape(-1)
        address = mapping.lp_fragment_address
        if piece.numel() == p.numel() and address.numel < p.numel():  # BF16_Optimizer keeps whole gradients
            piece = piece.narrow(0, address.start, address.numel)
        return self.unscaled_gradient(piece)

    def padding(self, of):
        """Beyond the parameters at the end of a group; in stages 1 and 2 the group is whole on every rank as well."""
        if self.plain:
            return super().padding(of)
        elements, largest = 0, 0.0
        for i, flat in enumerate(self.flats()):
            own = [self.parameters[name]._hp_mapping for name in self.parameters]
            spans = [m.hp_fragment_address for m in own if m and m.param_group_index == i]
            end = max((span.start + span.numel for span in spans), default=0)
            elements += flat.numel() - end
            if flat.numel() > end:
                largest = max(largest, float(flat.detach()[end:].abs().max()))
        whole = of == "parameter" and not self.mixed
        return (0, 0.0) if whole else (elements, largest)

    def configured(self):
        return super().configured() if self.plain else {**super().configured(), "layout": "flat"}


class Zero1(Partitioned):
    stage, strategy = 1, "optimizer"

    @classmethod
    def unsupported_stage(cls, case):
        middle = [i for i, j in zip(case.program, case.program[1:]) if i.verb == "micro" and i.sync and j.verb == "micro"]
        if middle:
            return "ZeRO stage 1 communicates gradients at the end of an accumulation only"
        return None

    def communication(self, sync):
        """Nothing is reduced before the boundary."""
        if not self.plain:
            self.engine.set_gradient_accumulation_boundary(self.last())
        return super(DeepSpeed, self).communication(sync)


class Zero2(Partitioned):
    stage, strategy = 2, "grad"


class Zero3(DeepSpeed):
    stage, strategy = 3, "full"
    offloads = ("optimizer", "param")
    accumulates = ("f32",)

    @classmethod
    def unsupported_stage(cls, case):
        sharding = case.sharding
        if sharding.wrap.policy in ("size", "pattern"):
            return "ZeRO stage 3 gathers by module and has no wrapping policy"
        if sharding.wrap.policy == "root":
            return "ZeRO stage 3 gathers by module, not the whole model as one unit"
        if sharding.prefetch.forward != sharding.prefetch.backward:
            return "stage3_prefetch_bucket_size counts for the forward and the backward alike"
        return None

    def zero(self):
        sharding = self.case.sharding
        largest = max(p.numel() for p in self.raw_parameters().values())
        made = {
            **super().zero(),
            "stage3_param_persistence_threshold": self.option("persistence_threshold", 0),  # 1e5: small parameters stay whole
            "stage3_prefetch_bucket_size": self.option("prefetch_bucket_size", largest * sharding.prefetch.forward)}
        if sharding.reshard_after_forward:  # 1e9: parameters stay gathered up to the backward
            made |= {"stage3_max_reuse_distance": 0, "stage3_max_live_parameters": 0}
        if sharding.reshard_ranks:
            made["zero_hpz_partition_size"] = sharding.reshard_ranks
        return made

    def build(self, initial):
        groups._ZERO_PARAM_INTRA_PARALLEL_GROUP = None  # hpZ's groups of an earlier case: DeepSpeed keeps them for the whole process
        super().build(initial)
        if not self.plain and self.engine.optimizer.persistent_parameters:  # gathered by the end of each step
            persistent = self.engine.optimizer.persistent_parameters
            persistent[0].all_gather(persistent)

    def size(self, p):
        return p.partition_numel()

    def held(self, name):
        """Of a parameter below the persistence threshold every rank holds all, in what it computes with."""
        if self.plain:
            return super().held(name)
        p = self.parameters[name]
        return (0, p.ds_numel) if p.ds_persist and not self.mixed else self.updates(name)

    def part(self, name, what):
        return self.held(name) if self.plain or what == "param" else self.updates(name)

    def updates(self, name):
        p = self.parameters[name]
        begin = min(self.engine.optimizer._get_param_partition_rank(p) * self.size(p), p.ds_numel)
        return begin, min(self.size(p), p.ds_numel - begin)

    def place(self, p):
        """(group, offset) of a parameter's piece in the masters."""
        group, offset, _ = self.engine.optimizer.grad_position[self.engine.optimizer.get_param_id(p)]
        return group, offset

    def whole_piece(self, name, what):
        """The rank's piece with its padding, or None."""
        p, wrapped = self.parameters[name], self.engine.optimizer
        if what == "param" and not self.mixed:
            return p.ds_tensor.detach()
        group, offset = self.place(p)
        flat = wrapped.fp32_partitioned_groups_flat[group]
        if what == "param":
            whole = flat.detach()
        elif what == "grad":
            # what get_local_fp32_grad_for_param gives, before it is widened: in the type in which it is held
            return self.unscaled_gradient(wrapped._get_fp32_grad_state_partition(p, release_swap_buffers=True)[0]) if p.requires_grad else None
        elif what == "clipped":
            whole = self.seen.get(id(flat))
        else:
            whole = self.base.state.get(flat, {}).get(STATE_KEYS[what])
        return None if whole is None else whole.narrow(0, offset, self.size(p))

    def local(self, name, what):
        if self.plain:
            return super().local(name, what)
        if what == "param" and self.parameters[name].ds_persist and not self.mixed:
            return self.parameters[name].detach().reshape(-1)
        piece = self.whole_piece(name, what)
        return None if piece is None else piece[:self.updates(name)[1]]

    def padding(self, of):
        if self.plain:
            return super().padding(of)
        whats = {"parameter": "param", "gradient": "grad", "optimizer": "param"}
        elements, largest = 0, 0.0
        for name in self.parameters:
            piece = self.whole_piece(name, whats[of])
            rest = piece[self.updates(name)[1]:] if piece is not None else ()
            elements += len(rest)
            if len(rest) and of == "gradient":
                largest = max(largest, float(rest.abs().max()))
        return elements, largest

    def updated_tensors(self):
        return self.engine.optimizer.fp32_partitioned_groups_flat

    def configured(self):
        if self.plain:
            return super().configured()
        zero = self.engine._config.zero_config
        within = next(iter(self.parameters.values())).ds_zero_param_process_group  # hpZ's group
        return {**super().configured(), "reshard_after_forward": str(zero.max_reuse_distance == 0).lower(),
                "reshard_ranks": "0" if within is None else str(deepspeed.comm.get_world_size(group=within)),
                "persistence_threshold": str(int(zero.param_persistence_threshold)),
                "persistent": str(len(self.engine.optimizer.persistent_parameters)),
                "prefetch_bucket_size": str(int(zero.prefetch_bucket_size))}
