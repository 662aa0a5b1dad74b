"""Seeded bugs: each turns one real mistake into a patch of the adapter, so that the suite can prove that
it finds it. A case's option `fault`, or FSDPMARK_FAULT, names one; suite/faults/ says where it must be found.

A fault is a function of the subject, called before anything is built. It replaces methods of that one
object, or the framework's functions through the stack, which puts them back after the case.
"""

from contextlib import ExitStack
from unittest.mock import patch

import torch
import torch.distributed as dist

from .job import InputError

FAULTS = {}


def fault(function):
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


def after(subject, method, action):
    """Calls action() after the subject's method, and returns what the method did."""
    original = getattr(subject, method)

    def patched(*arguments):
        result = original(*arguments)
        action(result)
        return result

    setattr(subject, method, patched)


def local_grads(subject):
    return [subject.flatten(p.grad) for p in subject.parameters.values() if p.grad is not None and p.numel()]


@fault
def sum_instead_of_mean(subject, stack):
    """fully_shard: gradients are summed over the ranks (Z01)."""
    def divide_by_one(model):
        for unit in subject.units:
            unit.set_force_sum_reduction_for_comms(True)
            unit.set_gradient_divide_factor(1.0)
    after(subject, "wrap", divide_by_one)


@fault
def replicas_not_reduced(subject, stack):
    """fully_shard on a 2-D mesh: the reduction over the replicas is left out (Z02)."""
    stack.enter_context(patch("torch.distributed.fsdp._fully_shard._fsdp_collectives.dist.all_reduce", lambda *_, **__: None))


@fault
def bucket_not_reduced(subject, stack):
    """DDP: a communication hook that forgets the last bucket (Z03)."""
    def hook(state, bucket):
        if not bucket.is_last():
            buffer = bucket.buffer().div_(dist.get_world_size())
            return dist.all_reduce(buffer, async_op=True).get_future().then(lambda done: done.value()[0])
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future
    after(subject, "wrap", lambda ddp: ddp.register_comm_hook(None, hook))


@fault
def last_microbatch_only(subject, stack):
    """Gradients of a microbatch overwrite those before it (Z04)."""
    original = subject.communication

    def forgetful(sync):
        for p in subject.parameters.values():
            p.grad = None
        return original(sync)
    subject.communication = forgetful


@fault
def local_norm(subject, stack):
    """Clipping by the norm of the rank's own shard (Z07)."""
    def clip(norm, limit):
        grads = local_grads(subject)
        total = float(torch.nn.utils.get_total_norm(grads, float(norm))) if grads else 0.0
        for grad in grads:
            grad.mul_(min(1.0, limit / (total + 1e-6)))
        return total
    subject.clip = clip


@fault
def norm_without_tensor_axis(subject, stack):
    """Tensor parallelism: the norm to clip by is added up over the shards, not over the tensor axis (Z07)."""
    def clip(norm, limit):
        total = torch.nn.utils.get_total_norm(local_grads(subject), float(norm)) ** float(norm)
        dist.all_reduce(total, group=subject.data_mesh().get_group())
        total = float(total) ** (1 / float(norm))
        for grad in local_grads(subject):
            grad.mul_(min(1.0, limit / (total + 1e-6)))
        return total
    subject.clip = clip


@fault
def norm_weights_not_reduced(subject, stack):
    """Tensor parallelism with the sequence cut: the gradient of a weight that all tensor ranks hold stays each
    rank's own, from its part of the sequence (Z03)."""
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    from torch.distributed.tensor import DTensor
    original = FSDPParam._get_grad_inner_tensor

    def unreduced(parameter, grad):
        if isinstance(grad, DTensor) and any(placement.is_partial() for placement in grad.placements):
            grad = DTensor.from_local(grad.to_local(), grad.device_mesh, parameter._unsharded_dtensor_spec.placements, run_check=False)
        return original(parameter, grad)
    stack.enter_context(patch.object(FSDPParam, "_get_grad_inner_tensor", unreduced))


@fault
def norm_of_the_stage(subject, stack):
    """Pipeline: each stage clips by the norm of its own parameters, as clip_grad_norm_ alone does (Z07)."""
    def clip(norm, limit):
        total = torch.nn.utils.clip_grad_norm_(list(subject.parameters.values()), limit, norm_type=float(norm))
        return float(total.full_tensor() if hasattr(total, "full_tensor") else total)
    subject.clip = clip


@fault
def last_shard_untrained(subject, stack):
    """The last rank's shard gets no gradient (Z11)."""
    def drop(optimizer):
        if subject.world.rank == subject.world.size - 1:
            optimizer.register_step_pre_hook(lambda *_: [grad.zero_() for grad in local_grads(subject)] and None)
    after(subject, "make_optimizer", drop)


@fault
def unfreeze_ignored(subject, stack):
    """What was frozen once never trains again (Z13)."""
    original = subject.require_grad
    subject.require_grad = lambda pattern, wanted: None if wanted else original(pattern, wanted)


@fault
def stale_parameters(subject, stack):
    """fully_shard: parameters stay gathered after the backward, so that the next forward uses those from
    before the step (Z15)."""
    after(subject, "wrap", lambda model: model.set_reshard_after_backward(False))


@fault
def reduce_in_bf16(subject, stack):
    """fully_shard: gradients are reduced in bf16 whatever was asked (Z19)."""
    from torch.distributed.fsdp import MixedPrecisionPolicy
    import __main__ as adapter

    def policy(param_dtype=None, reduce_dtype=None):
        return MixedPrecisionPolicy(param_dtype=param_dtype, reduce_dtype=torch.bfloat16)
    stack.enter_context(patch.object(adapter, "MixedPrecisionPolicy", policy))


@fault
def bf16_masters(subject, stack):
    """The updated parameters are kept in bf16 (Z20)."""
    def round_all(*_):
        for p in subject.parameters.values():
            p.data.copy_(p.data.bfloat16().to(p.dtype))
    after(subject, "make_optimizer", lambda optimizer: optimizer.register_step_post_hook(round_all))


@fault
def optimizer_over_copies(subject, stack):
    """The optimizer was made over other tensors than the model trains (Z22)."""
    original = subject.make_optimizer

    def over_copies():
        real = subject.parameters
        subject.parameters = {name: torch.nn.Parameter(p.detach().clone()) for name, p in real.items()}
        optimizer = original()
        subject.parameters = real
        return optimizer
    subject.make_optimizer = over_copies


@fault
def step_counted_twice(subject, stack):
    """AdamW's step counter runs twice as fast: the bias correction is wrong from the second step on (Z23)."""
    def count_again(optimizer, *_):
        for state in optimizer.state.values():
            state["step"] += 1
    after(subject, "make_optimizer", lambda optimizer: optimizer.register_step_post_hook(count_again))


@fault
def no_initial_broadcast(subject, stack):
    """DDP: ranks keep the parameters that they started with (Z24)."""
    stack.enter_context(patch("torch.nn.parallel.distributed._sync_module_states", lambda **_: None))


@fault
def gathered_copies_kept(subject, stack):
    """fully_shard: something holds on to a copy of every unit that was gathered (Z27)."""
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    original, kept = FSDPParam.init_unsharded_param, {}

    def keeping(parameter):
        original(parameter)
        kept[id(parameter)] = parameter._unsharded_param.detach().clone()
    stack.enter_context(patch.object(FSDPParam, "init_unsharded_param", keeping))


@fault
def whole_gradients_kept(subject, stack):
    """fully_shard: the unsharded gradients stay on the rank after they were reduced (Z27)."""
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    original, kept = FSDPParam.unsharded_grad_data, {}

    def keeping(parameter):
        gradient = original.fget(parameter)
        kept[id(parameter)] = gradient
        return gradient
    stack.enter_context(patch.object(FSDPParam, "unsharded_grad_data", property(keeping)))


@fault
def states_of_whole_tensors(subject, stack):
    """The optimizer makes room for its states in the size of whole parameters (Z27)."""
    kept = []

    def whole(optimizer, *_):
        if not kept:
            kept.extend(torch.zeros(p.shape) for p in subject.parameters.values() for _ in range(2))
    after(subject, "make_optimizer", lambda optimizer: optimizer.register_step_post_hook(whole))


@fault
def waiting_gradients_kept(subject, stack):
    """fully_shard: gradients that wait for a synchronisation stay on the rank after it (Z27)."""
    kept, original = {}, subject.backward

    def keeping(loss):
        original(loss)
        groups = [group for unit in subject.units for group in unit._get_fsdp_state()._fsdp_param_groups]
        kept.update({id(p): p.unsharded_param.grad for group in groups for p in group.fsdp_params if p.unsharded_param.grad is not None})
    subject.backward = keeping


@fault
def recomputed_units_left_full(subject, stack):
    """fully_shard: under activation checkpointing the memory of gathered units is never freed (Z30)."""
    if subject.case.sharding.activation_checkpointing:
        after(subject, "wrap", lambda model: model.set_keep_unsharded_storage(True))


@fault
def frozen_units_left_full(subject, stack):
    """fully_shard: units of which nothing trains stay gathered from step to step (Z13)."""
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
    original = FSDPParamGroup.reshard

    def lazy(group):
        if any(p.sharded_param.requires_grad for p in group.fsdp_params):
            original(group)
    stack.enter_context(patch.object(FSDPParamGroup, "reshard", lazy))


@fault
def gradients_logged_for_ever(subject, stack):
    """Each step keeps its gradients in a list (Z27)."""
    history = []
    after(subject, "make_optimizer", lambda optimizer: optimizer.register_step_post_hook(
        lambda *_: history.append([grad.clone() for grad in local_grads(subject)])))


@fault
def pieces_not_gathered(subject, stack):
    """ZeRO stage 1: after a step each rank keeps the old values of the pieces that others updated (Z15)."""
    stack.enter_context(patch("deepspeed.runtime.zero.stage_1_and_2.all_gather_dp_groups", lambda **_: None))


@fault
def pieces_not_reduced(subject, stack):
    """ZeRO stage 2: gradients are divided by the ranks, and not added over them (Z03)."""
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
    stack.enter_context(patch.object(DeepSpeedZeroOptimizer, "allreduce_and_scatter", lambda *_, **__: None))


@fault
def pieces_overwritten(subject, stack):
    """ZeRO stage 3: the count of microbatches stays 0, so each overwrites the gradient of those before it (Z04)."""
    from deepspeed.runtime.base_optimizer import ZeROOptimizer
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
    stack.enter_context(patch.object(DeepSpeedZeroOptimizer_Stage3, "clear_backward_seen_flag", ZeROOptimizer.clear_backward_seen_flag))


def before_backward(subject, action):
    original = subject.backward

    def patched(loss):
        action()
        return original(loss)
    subject.backward = patched


@fault
def gathered_again(subject, stack):
    """fully_shard: every parameter is gathered once more before the backward, as for a recomputation (Z30)."""
    before_backward(subject, lambda: [p.full_tensor() for p in subject.parameters.values() if hasattr(p, "full_tensor")] and None)


@fault
def gathered_in_every_microbatch(subject, stack):
    """fully_shard, strategy grad: what the forward gathered is dropped after each backward of a step (Z28)."""
    stack.enter_context(patch("torch.distributed.fsdp.FSDPModule.set_reshard_after_backward", lambda *_: None))


@fault
def reduced_for_nothing(subject, stack):
    """Zeros of the size of all gradients are reduced before the backward (Z28)."""
    before_backward(subject, lambda: dist.all_reduce(torch.zeros(sum(p.numel() for p in subject.parameters.values()))))


@fault
def broadcast_each_step(subject, stack):
    """DDP: rank 0 broadcasts the parameters before each backward, though all have them (Z28)."""
    before_backward(subject, lambda: [dist.broadcast(p.data, 0) for p in subject.parameters.values()] and None)


def seeded(name, subject):
    """A context in which the named fault is there; none for an empty name."""
    stack = ExitStack()
    if name:
        if name not in FAULTS:
            raise InputError(f"fault: found {name!r}, expected one of {', '.join(sorted(FAULTS))}")
        FAULTS[name](subject, stack)
    return stack
