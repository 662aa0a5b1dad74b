"""One case on one rank: its arrays, its compiled functions, and what the rank holds.

Functions are compiled ahead of time (`lower(...).compile()`), so that the program that runs is the one whose HLO is read, and kept
for all cases of a start that need the same one.
"""

import json
import os
from fnmatch import fnmatchcase

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import multihost_utils

import storage
from functions import DTYPE_NAMES, DTYPES, Functions
from manual import Manual
from traffic import collectives

COMPILED = {}  # (what of a case is compiled in, function, trained names) -> compiled function
STATE = {"exp_avg": "mu", "exp_avg_sq": "nu", "momentum": "trace"}  # by optax's names
KINDS = {"parameter": ["param"], "gradient": ["grad"], "optimizer": list(STATE)}


def orbax():
    """Loaded where a case saves or loads: it takes longer than JAX itself."""
    import orbax.checkpoint
    return orbax.checkpoint


def plain_value(thing):
    return json.dumps(thing, default=vars, sort_keys=True)


def only(state, names):
    """The optimizer state of some parameters: optax keeps one dict by name for each kind."""
    return jax.tree.map(lambda x: {n: x[n] for n in names} if isinstance(x, dict) else x, state, is_leaf=lambda x: isinstance(x, dict))


def merge(state, part):
    return jax.tree.map(lambda x, y: {**x, **y} if isinstance(x, dict) else y, state, part, is_leaf=lambda x: isinstance(x, dict))


class Trainer:
    def __init__(self, case, world, options):
        self.case, self.world = case, world
        self.mesh = world.mesh(case.sharding.mesh)
        kind = Manual if options["partitioning"] == "manual" else Functions
        self.functions = kind(case, self.mesh, storage.Rule(options["uneven"], case.sharding.mesh[1]), options["bias_correction"] == "exact")
        self.whole = storage.replicated(self.mesh)
        self.key = plain_value([options, case.model, case.parameters, case.sharding, case.precision, case.optimizer, case.clip,
                                case.world_size, case.global_rows])
        self.frozen, self.traffic = set(), {}
        self.gradients = self.clipped = None

    # ---- compiled functions ----
    def compiled(self, name, *arguments, out=None, donate=()):
        """Calls functions.NAME, compiled for these arguments."""
        key = self.key, name, tuple(sorted(self.trained_names())), jax.tree.structure(arguments)
        if key not in COMPILED:
            shardings = {} if out is None else {"out_shardings": out}
            lowered = jax.jit(getattr(self.functions, name), donate_argnums=donate, **shardings).lower(*arguments)
            program = lowered.compile()
            COMPILED[key] = program, collectives(program.as_text()) if self.world.size > 1 else {}
        program, sent = COMPILED[key]
        self.traffic[name] = sent
        return program(*arguments)

    # ---- arrays ----
    def build(self, initial):
        case, f = self.case, self.functions
        if case.divergent_init:
            initial = multihost_utils.broadcast_one_to_all(initial)
        dtype = np.dtype(DTYPES[case.precision.parameter])
        self.parameters = {name: storage.place(np.asarray(initial[name]).astype(dtype), f.stored[name], f.parameter_sharding[name])
                           for name in f.shapes}
        self.state = self.compiled_init()
        scale = case.precision.loss_scale
        leaves = {"none": [], "static": [np.float32(scale.initial)], "dynamic": [np.float32(scale.initial), np.int32(0)]}[scale.mode]
        self.scale = [storage.place(x, (), self.whole) for x in leaves]
        self.zero_grad()

    def state_shardings(self, state):
        def of(path, leaf):
            names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
            return self.functions.state_sharding[names[-1]] if names else self.whole
        return jax.tree_util.tree_map_with_path(of, state)

    def compiled_init(self):
        init = self.functions.transformation.init
        out = self.state_shardings(jax.eval_shape(init, self.parameters))
        key = self.key, "init"
        if key not in COMPILED:
            COMPILED[key] = jax.jit(init, out_shardings=out).lower(self.parameters).compile()
        return COMPILED[key](self.parameters)

    def trained_names(self):
        return [name for name in self.functions.shapes if name not in self.frozen]

    def split(self):
        trained = set(self.trained_names())
        return ({n: p for n, p in self.parameters.items() if n in trained}, {n: p for n, p in self.parameters.items() if n not in trained})

    # ---- verbs ----
    def zero_grad(self):
        f = self.functions
        self.gradients = {n: storage.place(np.zeros(f.shapes[n], self.parameters[n].dtype), f.stored[n], f.gradient_sharding[n])
                          for n in self.trained_names()}
        self.micros, self.pending = 0, {}

    def out_gradients(self):
        return {n: self.functions.gradient_sharding[n] for n in self.trained_names()}

    def totals(self):
        """Gradients so far; what became trained since the last zero_grad starts at zero."""
        names = self.trained_names()
        if set(names) != set(self.gradients):
            raise RuntimeError("parameters were frozen or unfrozen between zero_grad and the next microbatch")
        return self.gradients

    def micro(self, batch, sync):
        trained, frozen = self.split()
        if sync:
            self.gradients, shares = self.compiled("micro", trained, frozen, self.totals(), self.scale, batch, self.pending,
                                                   out=(self.out_gradients(), self.functions.rows_sharding), donate=(2,))
            self.pending = {}
        else:
            self.pending, shares = self.compiled("local", trained, frozen, self.scale, batch, self.pending)
        self.micros += 1
        return self.own_share(shares)

    def forward(self, batch):
        trained, frozen = self.split()
        backward, shares = self.compiled("forward", trained, frozen, self.scale, batch)
        return backward, self.own_share(shares)

    def backward(self, backward, sync):
        if sync:
            self.gradients = self.compiled("backward", backward, self.totals(), self.scale, self.pending, out=self.out_gradients(), donate=(1,))
            self.pending = {}
        else:
            self.pending = self.compiled("wait", backward, self.pending)
        self.micros += 1

    def evaluate(self, batch):
        return self.own_share(self.compiled("evaluate", self.parameters, batch, out=self.functions.rows_sharding))

    def own_share(self, shares):
        """This rank's element; where the compiler chose to keep shares whole, its own position."""
        part = storage.own_part(shares)[1]
        return float(part[0] if part.size == 1 else part[self.world.rank])

    def clip(self):
        self.gradients, norm = self.compiled("clip", self.gradients, out=(self.out_gradients(), self.whole))
        return float(norm)

    def step(self):
        """Returns (skipped, the loss scale in use)."""
        names = self.trained_names()
        trained, _ = self.split()
        scale, state = self.scale, only(self.state, names)
        out = ({n: self.functions.parameter_sharding[n] for n in names}, self.state_shardings(state), jax.tree.map(lambda _: self.whole, scale), self.whole)
        used = float(scale[0]) if scale else 1.0
        trained, state, self.scale, skipped = self.compiled("update", trained, self.gradients, state, scale, out=out, donate=(0, 2))
        self.parameters.update(trained)
        self.state = merge(self.state, state)
        return bool(skipped), used

    def freeze(self, pattern, wanted):
        names = {n for n in self.functions.shapes if fnmatchcase(n, pattern)}
        self.frozen = self.frozen - names if wanted else self.frozen | names
        if self.micros == 0:
            self.zero_grad()

    # ---- checkpoints: orbax, which reads into any sharding; what it finds longer or shorter is padding ----
    def checkpoint(self):
        return {"parameters": self.parameters, "state": self.state, "scale": self.scale}

    def save(self, folder):
        with orbax().PyTreeCheckpointer() as checkpointer:
            checkpointer.save(os.path.join(folder, "jax"), self.checkpoint(), force=True)

    def load(self, folder):
        tree, ocp = self.checkpoint(), orbax()
        into = jax.tree.map(lambda x: ocp.ArrayRestoreArgs(sharding=x.sharding, global_shape=x.shape, dtype=x.dtype, strict=False), tree)
        with ocp.PyTreeCheckpointer() as checkpointer:
            tree = checkpointer.restore(os.path.join(folder, "jax"), item=tree, restore_args=into)
        self.parameters, self.state, self.scale = tree["parameters"], tree["state"], tree["scale"]

    # ---- what is held ----
    def arrays(self, what):
        if what == "param":
            return self.parameters
        if what in ("grad", "clipped"):
            return self.gradients if self.micros else {}
        return optax.tree.get(self.state, STATE[what]) or {}

    def local(self, what):
        """name -> (offsets in the full tensor, this rank's elements), copied, without communication."""
        found = {}
        for name, array in self.arrays(what).items():
            index, part = storage.own_part(array)
            offsets = storage.elements(index, self.functions.shapes[name], self.functions.stored[name])
            found[name] = offsets[offsets >= 0], part.reshape(-1)[offsets >= 0].copy()
        return found

    def cut(self, shardings):
        """name -> offsets of what this rank has of a tensor with that sharding."""
        found = {}
        for name, stored in self.functions.stored.items():
            index = shardings[name].devices_indices_map(stored)[jax.local_devices()[0]]
            offsets = storage.elements(index, self.functions.shapes[name], stored)
            found[name] = offsets[offsets >= 0]
        return found

    def updated(self):
        """name -> offsets of what this rank's optimizer updates."""
        return self.cut(self.functions.state_sharding)

    def padding(self, of):
        """(elements that this rank holds beyond the tensors, the largest absolute value among them)."""
        count, largest = 0, 0.0
        for what in KINDS[of]:
            for name, array in self.arrays(what).items():
                index, part = storage.own_part(array)
                beyond = part.reshape(-1)[storage.elements(index, self.functions.shapes[name], self.functions.stored[name]) < 0]
                count += beyond.size
                if beyond.size:
                    largest = np.maximum(largest, np.abs(beyond.astype(np.float64)).max())
        return count, float(largest)

    def configured(self):
        case, sharding = self.case, self.case.sharding
        parameter = next(iter(self.parameters.values()))
        shape = self.mesh.devices.shape
        said = {"strategy": sharding.strategy, "mesh": f"{shape[0]}x{shape[1]}", "parameter": DTYPE_NAMES[parameter.dtype],
                "compute": DTYPE_NAMES[jnp.dtype(self.functions.compute)], "offload": "none",
                "activation_checkpointing": "true" if sharding.activation_checkpointing else "false"}
        if isinstance(self.functions, Manual):
            said["reduce"] = DTYPE_NAMES[jnp.dtype(self.functions.reduce_type)]
        states = {DTYPE_NAMES[x.dtype] for x in jax.tree.leaves(self.state) if x.ndim}
        if len(states) == 1:
            said["optimizer_state"] = states.pop()
        if sharding.strategy in ("full", "hybrid") and not self.functions.regathers:
            said["reshard_after_forward"] = "false"  # true can only be asked of the compiler: see NOTE in adapter.py
        return said
