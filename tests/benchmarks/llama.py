"""Our GPT as a GGUF file of GPT-2's architecture, and llama.cpp, which writes texts with it.

llama.cpp has GELU by its formula with tanh only, so `generation` gives our GPT that one, too.
"""

from __future__ import annotations

import ctypes

import numpy as np

BLOCK = {
    "attn_norm": "norm1", "attn_qkv": "attention.qkv", "attn_output": "attention.out",
    "ffn_norm": "norm2", "ffn_up": "mlp.0", "ffn_down": "mlp.2",
}  # fmt: skip
"""GGUF's names of the layers of a block, and ours."""


def write_gguf(net, path: str, kind: str = "F32") -> None:
    """Write a GPT, the matrices of its blocks in a format of GGUF's: "F32", "Q4_0", ..."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    own = {name: p.numpy() for name, p in net.named_parameters()}
    words, width = own["tokens.weight"].shape
    file, kind = GGUFWriter(path, "gpt2"), GGMLQuantizationType[kind]
    file.add_context_length(net.context)
    file.add_embedding_length(width)
    file.add_block_count(len(net.blocks))
    file.add_feed_forward_length(own["blocks.0.mlp.0.bias"].size)
    file.add_head_count(width // net.blocks[0].attention.size)
    file.add_layer_norm_eps(1e-5)
    file.add_tokenizer_model("none")
    file.add_vocab_size(words)
    file.add_tensor("token_embd.weight", own["tokens.weight"])
    file.add_tensor("position_embd.weight", own["places.weight"])
    layers = {f"blk.{k}.{theirs}": f"blocks.{k}.{ours}"
              for k in range(len(net.blocks)) for theirs, ours in BLOCK.items()}  # fmt: skip
    for theirs, ours in (layers | {"output_norm": "norm"}).items():
        file.add_tensor(f"{theirs}.bias", own[f"{ours}.bias"])
        weight = np.ascontiguousarray(own[f"{ours}.weight"].T)
        few = weight.ndim == 2 and kind != GGMLQuantizationType.F32
        weight, form = (quantize(weight, kind), kind) if few else (weight, None)
        file.add_tensor(f"{theirs}.weight", weight, raw_dtype=form)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


class Llama:
    """A model of llama.cpp for n texts of at most `context` tokens."""

    def __init__(self, path: str, n: int, context: int, threads: int):
        import llama_cpp

        self.api, self.n = llama_cpp, n
        self.quiet = llama_cpp.llama_log_callback(lambda *said: None)  # lives as long as it may say
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        options = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), options)
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = options.n_batch = options.n_ubatch = n * context
        options.n_seq_max, options.n_threads, options.n_threads_batch = n, threads, threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.batch = llama_cpp.llama_batch_init(n * context, 0, 1)
        self.words = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def scores(self, tokens, start: int) -> np.ndarray:
        """Scores [n, words] after tokens [n, length], which follow `start` others of each text."""
        batch, (n, length) = self.batch, np.shape(tokens)
        batch.n_tokens = n * length
        for k, token in enumerate(np.ravel(tokens).tolist()):
            text, place = divmod(k, length)
            batch.token[k], batch.pos[k], batch.logits[k] = (
                token,
                start + place,
                place == length - 1,
            )
            batch.n_seq_id[k], batch.seq_id[k][0] = 1, text
        if self.api.llama_decode(self.context, batch):
            raise RuntimeError(f"llama.cpp could not decode {n} texts of {length} tokens")
        last = (
            self.api.llama_get_logits_ith(self.context, k)
            for k in range(length - 1, n * length, length)
        )
        return np.stack([np.ctypeslib.as_array(row, (self.words,)) for row in last])

    def write(self, text, count: int) -> np.ndarray:
        """The likeliest tokens [n, count] after a text [n, length]."""
        self.api.llama_memory_clear(self.memory, True)
        scores, found = self.scores(text, 0), []
        for k in range(count):
            found.append(scores.argmax(-1))
            if k + 1 < count:
                scores = self.scores(found[-1][:, None], text.shape[1] + k)
        return np.stack(found, 1)

    def close(self) -> None:
        self.api.llama_batch_free(self.batch)
        self.api.llama_free(self.context)
        self.api.llama_model_free(self.model)
