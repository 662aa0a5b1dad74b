"""The models against plain formulas in float64, and the factors of the loss."""

import math
import unittest
from types import SimpleNamespace

import jobs
import torch
from fsdpmark_adapter import models
from fsdpmark_adapter.batch import Batches, Extra
from fsdpmark_adapter.job import MODEL, accept


def spec(model):
    return accept(model, MODEL, "model")


class Models(unittest.TestCase):
    def test_tables_name_what_the_protocol_names(self):
        names = [row["name"] for row in models.table(spec(jobs.LLAMA))]
        self.assertEqual(names[:4], ["embed.weight", "blocks.0.norm1.weight", "blocks.0.attention.query.weight", "blocks.0.attention.key.weight"])
        self.assertEqual(names[-2:], ["norm.weight", "head.weight"])
        rows = {row["name"]: row for row in models.table(spec(jobs.TRANSFORMER))}
        self.assertEqual(rows["position.weight"]["shape"], [6, 16])
        self.assertEqual(rows["blocks.1.attention.key.weight"], {"name": "blocks.1.attention.key.weight", "shape": [8, 16],
                                                                 "unit": "blocks.1", "tied_to": None, "decay": True})
        self.assertFalse(rows["blocks.1.mlp.up.bias"]["decay"])

    def test_a_parameter_may_be_called_like_a_method(self):
        unit = {"kind": "witness", "units": [{"name": "u0", "parameters": [{"name": "double", "shape": [2]}]}]}
        self.assertEqual(models.table(spec(unit))[0]["name"], "u0.double")

    def test_witness_gradient_is_the_weighted_data(self):
        model = models.Witness(spec(jobs.WITNESS))
        x = {"u0.w": torch.randn(4, 5, 3), "u0.b": torch.randn(4, 1), "u1.w": torch.randn(4, 7)}
        weight = torch.tensor([1.0, 0.0, 2.0, 0.5])
        model(x, Extra(weight)).backward()
        for name, p in model.named_parameters():
            torch.testing.assert_close(p.grad, torch.einsum("r,r...->...", weight, x[models.clean(name)]))

    def test_rotation_turns_pairs_half_a_width_apart(self):
        x = torch.randn(1, 1, 3, 4, dtype=torch.float64)
        y = models.rotate(x, 100.0)
        for t in range(3):
            for i in range(2):
                angle = t * 100.0 ** (-2 * i / 4)
                a, b = x[0, 0, t, i], x[0, 0, t, i + 2]
                self.assertAlmostEqual(float(y[0, 0, t, i]), float(a * math.cos(angle) - b * math.sin(angle)))
                self.assertAlmostEqual(float(y[0, 0, t, i + 2]), float(b * math.cos(angle) + a * math.sin(angle)))

    def test_grouped_queries_use_their_key_head(self):
        attention = models.Attention(spec(jobs.TRANSFORMER)).double()
        x = torch.randn(2, 6, 16, dtype=torch.float64)
        q, k, v = (layer(x).view(2, 6, -1, 4) for layer in (attention.query, attention.key, attention.value))
        heads = []
        for h in range(4):
            score = torch.einsum("btd,bsd->bts", q[:, :, h], k[:, :, h // 2]) / 2
            score = score.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
            heads.append(torch.einsum("bts,bsd->btd", score.softmax(-1), v[:, :, h // 2]))
        torch.testing.assert_close(attention(x), attention.output(torch.cat(heads, -1)))

    def test_float64_gradient_agrees_with_central_differences(self):
        for kind in (jobs.TRANSFORMER, jobs.LLAMA):
            torch.manual_seed(1)
            model = models.Transformer(spec(kind)).double()
            tokens = torch.randint(0, 13, (2, 6))
            extra = Extra(torch.rand(2, 6, dtype=torch.float64), tokens.flip(-1))
            model(tokens, extra).backward()
            for name, p in model.named_parameters():
                flat, grad = p.data.view(-1), p.grad.view(-1)
                i = int(grad.abs().argmax())
                old, ends = float(flat[i]), []
                for end in (old + 1e-5, old - 1e-5):
                    flat[i] = end
                    ends.append(float(model(tokens, extra).detach()))
                flat[i] = old
                self.assertAlmostEqual(float(grad[i]), (ends[0] - ends[1]) / 2e-5, delta=1e-6 * (1 + abs(float(grad[i]))), msg=name)


class Loss(unittest.TestCase):
    def test_factors(self):
        weight = torch.tensor([[[1.0, 0.0, 2.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0]]])  # (1 step, 2 micros, 5 rows)
        for loss, rank, expected in (("sum", 0, 2.0), ("mean_of_tokens", 1, 2 / 10), ("mean_of_ranks", 0, 1 / 1), ("mean_of_ranks", 1, 1 / 4)):
            case = SimpleNamespace(global_rows=5, world_size=2, loss=loss, model=None, sharding=SimpleNamespace(tensor=1, pipeline=1))
            batches = Batches(case, {"weight": weight}, rank, "cpu")
            self.assertEqual((batches.first, batches.end), [(0, 2), (2, 5)][rank])
            self.assertAlmostEqual(batches.scale(0, 0), expected)


if __name__ == "__main__":
    unittest.main()
