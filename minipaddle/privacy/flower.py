"""Our clients and strategies as apps of Flower's, which moves the messages (the extra `federated`).

A SuperLink and SuperNodes run the two apps; `deploy/federated` starts them. Records and their
fields have Flower's names, so either app works with one of Flower's own, too. In a secure run
SecAgg+ adds masks to what clients send, and the server sees the sum alone: FedAvg. In Flower 1.42
it speaks the earlier interface, on both sides.

Source: https://flower.ai/docs/framework.
"""

from __future__ import annotations

import importlib

from ..engine.core.errors import runtime_error


def flower(name: str):
    """A module of Flower's; RuntimeError if it is not installed."""
    try:
        return importlib.import_module(f"flwr.{name}")
    except ImportError as e:
        raise runtime_error(f"no Flower: {e}", hint='pip install "minipaddle[federated]"') from None


def make_client_app(make_client):
    """A ClientApp of the clients of ours that `make_client(context)` returns.

    SCAFFOLD's control of a client stays in the state of its node; a reply that is lost has changed
    it, and the server's mean has not.
    """
    app, clientapp = flower("app"), flower("clientapp")
    masks = [flower("client.mod").secaggplus_mod]
    secure = clientapp.ClientApp(lambda context: to_secure(make_client(context)), mods=masks)

    def choose(message, context, follow):
        return (secure if context.run_config.get("secure") else follow)(message, context)

    client_app = clientapp.ClientApp(mods=[choose])

    @client_app.train()
    def train(message, context):
        client = make_client(context)
        if own := context.state.array_records.get("control"):
            client.control = own.to_numpy_ndarrays()
        weights, count, metrics = client.fit(*read(message.content, "config"))
        if "control" in metrics:
            context.state["control"] = app.ArrayRecord(client.control)
        numbers = {"num-examples": count, **metrics}
        return app.Message(write(weights, numbers, "metrics"), reply_to=message)

    return client_app


def to_secure(client):
    """A client of ours in Flower's earlier interface, whose `fit` is the same."""
    fit = {"fit": lambda _, weights, config: client.fit(weights, config)}
    return type("SecureClient", (flower("client").NumPyClient,), fit)().to_client()


def write(weights, entries: dict, name: str):
    """The content of a message: weights, entries that are lists of arrays, and all others."""
    app, content = flower("app"), {"arrays": weights, **entries}
    lists = {k: app.ArrayRecord(v) for k, v in content.items() if isinstance(v, list)}
    record = {"config": app.ConfigRecord, "metrics": app.MetricRecord}[name]
    return app.RecordDict({name: record({k: entries[k] for k in entries.keys() - lists}), **lists})


def read(content, name: str) -> tuple[list, dict]:
    """(weights, entries) that `write` took."""
    arrays = {k: record.to_numpy_ndarrays() for k, record in content.array_records.items()}
    return arrays.pop("arrays"), {**content[name], **arrays}


def make_server_app(strategy, weights, report):
    """A ServerApp that trains from `weights` with one of our strategies; secure runs have FedAvg.

    The run's config says how many "rounds", after how many seconds ("timeout") a client that has
    not replied has left for a round, and whether the run is "secure". `report(number, weights,
    replies)` is called after each round.
    """
    app, server_app = flower("app"), flower("serverapp").ServerApp()

    @server_app.main()
    def run(grid, context):
        if context.run_config.get("secure"):
            return run_securely(grid, context, weights, report)
        arrays = weights
        for number in range(context.run_config["rounds"]):
            config, nodes = strategy.configure(number, arrays), [*grid.get_node_ids()]
            messages = [app.Message(write(arrays, config, "config"), n, "train") for n in nodes]
            replies = grid.send_and_receive(messages, timeout=context.run_config["timeout"])
            contents = [read(r.content, "metrics") for r in replies if not r.has_error()]
            results = [(ours, entries.pop("num-examples"), entries) for ours, entries in contents]
            arrays = strategy.join_results(arrays, results, len(nodes))
            report(number, arrays, len(results))

    return server_app


def run_securely(grid, context, weights, report) -> None:
    """Train by FedAvg under SecAgg+: three fifths of the clients must stay to a round's end.

    Flower 1.42 asks for shares of all clients that a round began with, also of one that left before
    it had made any, and then drops the round. Here a client belongs to the round once its shares
    are there. Weights times a thousandth of a client's count are cut at ±8, to fixed point of 2²².
    """
    rounds, timeout = context.run_config["rounds"], context.run_config["timeout"]
    server, workflow = flower("server"), flower("server.workflow")
    strategy = server.strategy.FedAvg(
        fraction_evaluate=0.0,
        initial_parameters=flower("common").ndarrays_to_parameters(weights),
        on_fit_config_fn=lambda number: {"server-round": number - 1},
        evaluate_fn=lambda number, arrays, _: report(number - 1, arrays, None) if number else None,
    )
    legacy = server.LegacyContext(context, server.ServerConfig(rounds), strategy)
    secure = workflow.SecAggPlusWorkflow(1.0, 0.6, timeout=timeout)
    secure.setup_stage = keep_present(secure.setup_stage)
    secure.share_keys_stage = keep_present(secure.share_keys_stage)
    workflow.DefaultWorkflow(fit_workflow=secure)(grid, legacy)


def keep_present(stage):
    """A stage of SecAgg+ after which those that replied are all there are."""

    def run(grid, context, state):
        enough = stage(grid, context, state)
        state.sampled_node_ids = state.active_node_ids
        return enough

    return run
