"""Stacked head of a masked language model, with a hand-written gradient.

S copies, K tokens to predict (the most of any copy), D width of what it reads, H width of the encoder, V vocabulary
"""

from masklab.kernels.rowwise import gelu, gelu_backward_
from masklab.models.stacked import WORD
from masklab.models.stacked.encoder import Norm
from masklab.models.stacked.products import affine, affine_gradients, input_gradient


class StackedHead:
    """`MaskedLM`'s head, and that of latent scores where there is one."""

    def __init__(self, parameters, config):
        self.parameters = parameters
        transform = config.head == "transform"
        self.norm = Norm(parameters, "head.norm", config.eps) if transform else None
        self.table = WORD if config.tied_head else "head.weight"
        self.projects = "head.project.weight" in parameters.shapes

    def forward(self, states, masked):
        """Logits [S, K, V] and latent logits [S, K, L] (None without them) of states [S, K, D] at the tokens of a
        `chosen.Masked`."""
        rows, read_weight = masked.own, self.parameters.read
        inner, active = None, states
        if self.norm is not None:
            inner = affine(states, read_weight("head.dense.weight"), None, rows)
            active = self.norm.forward(gelu(inner, self.parameters["head.dense.bias"], rows), counts=rows)
        read = affine(active, read_weight("head.project.weight"), None, rows) if self.projects else active
        read = masked.in_own_order(read)
        self.saved = states, inner, active, read, masked
        logits, latent = affine(read, read_weight(self.table), self.parameters["head.bias"], rows), None
        if "latent.weight" in self.parameters.shapes:
            latent = affine(read, read_weight("latent.weight"), self.parameters["latent.bias"], rows)
        return logits, latent

    def backward(self, g, g_latent=None):
        """Gradient of the states, given those of the logits: zero behind a copy's own tokens; writes those of the
        head's parameters, and of the token embeddings where they are its table."""
        states, inner, active, read, masked = self.saved
        self.saved = None  # memory for what comes next
        rows, gradient_of = masked.own, self.parameters.gradient_of
        affine_gradients(g, read, gradient_of(self.table), gradient_of("head.bias"), rows)
        g = input_gradient(g, self.parameters.read(self.table), rows)
        if g_latent is not None:
            affine_gradients(g_latent, read, *self.parameters.gradient_pair("latent"), rows)
            g = input_gradient(g_latent, self.parameters.read("latent.weight"), rows, g)
        elif "latent.weight" in self.parameters.shapes:
            for part in self.parameters.gradient_pair("latent"):
                part.zero_()
        g = masked.in_order(g)
        if self.projects:
            affine_gradients(g, active, gradient_of("head.project.weight"), None, rows)
            g = input_gradient(g, self.parameters.read("head.project.weight"), rows)
        if self.norm is None:
            return g
        bias, weight = self.parameters["head.dense.bias"], self.parameters.read("head.dense.weight")
        weight_gradient, bias_gradient = self.parameters.gradient_pair("head.dense")
        g = gelu_backward_(self.norm.backward(g)[0], inner, bias, bias_gradient, rows)
        affine_gradients(g, states, weight_gradient, None, rows)
        return input_gradient(g, weight, rows)
