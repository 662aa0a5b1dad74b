"""Seconds of PyTorch's training step on one device, eager and compiled, on the model of a case.

    python torch_step.py CASE.json SECONDS eager|compiled [cuda|cpu]

What the reference does in the same case (docs/cuda.md): parameters and AdamW's state in float32, cast to the compute type for each step, gradients in float32,
PyTorch's own fused attention and fused AdamW. Data stay the same. Prints {"mode", "seconds" (median), "steps", "tokens_per_second", "loss", "version"}; the first
steps, and what compiling takes, are not counted. Exit status 3, with the reason, where this PyTorch has no such device.
"""

import json
import statistics
import sys
import time

WARM, LEAST = 3, 5
TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def cannot(reason):
    print(reason)
    sys.exit(3)


def data_of(torch, case, device):
    model, rows = case["model"], case["global_rows"]
    tokens = torch.randint(0, model["vocab"], (rows, model["context"]), device=device)
    return tokens, tokens.roll(-1, dims=-1)


def make_loss(torch, module, compute):
    from fsdpmark_adapter.batch import Extra

    def loss(masters, tokens, targets):
        parameters = {name: p.to(compute) for name, p in masters.items()}
        weight = torch.ones(tokens.shape, device=tokens.device)
        total = torch.func.functional_call(module, parameters, (tokens, Extra(weight=weight, target=targets)))
        return total / tokens.numel()
    return loss


def main():
    path, seconds, mode, device = sys.argv[1], float(sys.argv[2]), sys.argv[3], (sys.argv + ["cuda"])[4]
    try:
        import torch
    except ImportError as error:
        cannot(f"PyTorch not found: {error}")
    if device == "cuda" and not torch.cuda.is_available():
        cannot(f"PyTorch {torch.__version__} finds no CUDA device")
    from fsdpmark_adapter import job, models
    case = json.load(open(path))
    spec = job.accept(case["model"], job.CASE["model"], path)
    torch.manual_seed(1)
    module = models.KINDS[spec.kind](spec).to(device)
    masters = dict(module.named_parameters())
    for name, p in masters.items():
        p.data.normal_(0, 0.02) if p.dim() > 1 else p.data.fill_(float(name.endswith("weight")))
    groups = [{"params": [p for p in masters.values() if (p.dim() > 1) == decays], "weight_decay": 0.1 * decays} for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
    loss_of = make_loss(torch, module, getattr(torch, TYPES[case["precision"]["compute"]]))
    if mode == "compiled":
        loss_of = torch.compile(loss_of)
    tokens, targets = data_of(torch, case, device)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(masters, tokens, targets)
        loss.backward()
        optimizer.step()
        wait()
        return loss

    began, times = time.monotonic(), []
    for _ in range(WARM):
        loss = step()
    while len(times) < LEAST or (time.monotonic() - began < seconds and len(times) < 50):
        start = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - start)
    median = statistics.median(times)
    print(json.dumps({"mode": mode, "seconds": median, "steps": len(times), "tokens_per_second": tokens.numel() / median, "loss": float(loss.detach()),
                      "version": torch.__version__}))


main()
