"""Stages of the case's model under Megatron's 1F1B schedule (pipeline_parallel/schedules.py, forward_backward_pipelining_without_interleaving).

A stage answers what the schedule and finalize_model_grads ask of a model: set_input_tensor, model_type and, where the first and the last stage share
the embedding, which of its weights that is. The last stage's copy of it is marked `shared`, so that it counts once in the norm, and both are marked
`shared_embedding`, which gives them a bucket of their own, as LanguageModule.setup_embeddings_and_output_layer does.

The schedule's microbatches are single rows. It divides the loss by their number, so the loss is multiplied by it before.
"""

import torch
from megatron.core.distributed.finalize_model_grads import finalize_model_grads
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import get_forward_backward_func

from fsdpmark_adapter import models, pipeline_stages
from fsdpmark_adapter.batch import Extra


class Asked:
    """What Megatron asks of a stage, beside the forward of pipeline_stages."""
    model_type = ModelType.encoder_or_decoder
    share_embeddings_and_output_weights = False

    def set_input_tensor(self, tensors):
        self.received = tensors[0]

    def shared_embedding_or_output_weight(self):
        return (self.embed if self.pre_process else self.head).weight


KINDS = {kind: type(stage.__name__, (Asked, stage), {}) for kind, stage in pipeline_stages.STAGES.items()}


def make_stage(case, model, index):
    stage = KINDS[case.model.kind](model, pipeline_stages.stage_modules(case, index))
    stage.pre_process, stage.post_process = index == 0, index == case.sharding.pipeline - 1
    stage.share_embeddings_and_output_weights = case.model.kind == "transformer" and case.model.tied
    if stage.share_embeddings_and_output_weights and (stage.pre_process or stage.post_process):
        weight = stage.shared_embedding_or_output_weight()
        weight.shared_embedding, weight.shared = True, stage.post_process
    return stage


def reason(case):
    """Why the case cannot be run in stages, or None."""
    model, stages = case.model, case.sharding.pipeline
    if len(models.units(case)) < stages:
        return f"{len(models.units(case))} blocks are fewer than {stages} stages"
    if model.kind == "mlp" and (model.unused or model.calls != list(range(len(model.sizes) - 1))):
        return "stages run their layers once and in order"
    if any(i.verb == "forward" for i in case.program):
        return "the schedule runs forward and backward together"
    return None


def shape_before(case, index):
    """The shape of one row's tensor on the way to this stage."""
    model = case.model
    if model.kind == "witness":
        return 1,
    if model.kind == "transformer":
        return 1, model.context, model.dim
    units = [pipeline_stages.own_units(case, stage) for stage in range(index)]
    return 1, model.sizes[sum(map(len, units))]


def run(subject, config, index, batches, step, micro):
    """Forward and, with gradients, backward of the rank's rows: the sum of what was differentiated, 0 before the last stage."""
    case, chunk = subject.case, subject.model
    inputs, extra = batches.at(step, micro, subject.compute)
    count, factor = len(extra.weight), batches.scale(step, micro)

    def forward_step(rows, chunk):
        row = next(rows)
        stage = chunk.module
        if case.model.kind == "witness":
            before = torch.zeros(1, device=extra.weight.device) if stage.pre_process else stage.received
            output = chunk(before, x={name: x[row] for name, x in inputs.items()})
        else:
            output = chunk(inputs[row] if stage.pre_process else stage.received)

        def loss(output):
            own = stage.loss(output, Extra(extra.weight[row], None if extra.target is None else extra.target[row])) * factor
            return own * count, own.detach()

        return output, loss

    config.grad_scale_func = subject.optimizer.scale_loss
    config.finalize_model_grads_func = finalize_model_grads if subject.sync else None
    config.no_sync_func = chunk.no_sync if subject.sync and chunk.ddp_config.overlap_grad_reduce else None
    losses = get_forward_backward_func()(
        forward_step_func=forward_step, data_iterator=iter([slice(i, i + 1) for i in range(count)]), model=chunk, num_microbatches=count,
        seq_length=1, micro_batch_size=1, forward_only=not torch.is_grad_enabled(),
        adjust_tensor_shapes_fn=lambda *_: ([shape_before(case, index)], [shape_before(case, index + 1)]))
    return sum(losses, torch.zeros(()))
