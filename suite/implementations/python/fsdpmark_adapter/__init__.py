"""What every Python implementation shares: the worker protocol, the models in torch.nn and the
interpreter of the program. An adapter adds one `Subject` class: how to wrap, what is held where.

    job.py       job.json and case.json, strictly read
    events.py    events and files, without any framework
    answer.py    tensor files
    models.py    witness, mlp, transformer
    batch.py     the rows of a rank, and the scale of its loss
    subject.py   the interface of an adapter, and the plain unwrapped model
    program.py   the verbs
    worker.py    one process: the cases of a job, one after another
    template.py  import once, fork the ranks
    hosts.py     their hosts on a virtual cluster
    flat.py      parameters that a framework puts one after another into one
    sibling.py   the adapters of other implementations, to derive from
    faults.py    seeded bugs
    bench.py     tokens per second of an adapter
"""
