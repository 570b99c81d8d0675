"""Stacked LSTM blocks, with hand-written gradients: `models.blocks.LstmBlock` of every copy.

S copies, P places of packed tokens, H width, h = H / 2 that of a direction
"""

from masklab.kernels.recurrent import lstm, lstm_backward
from masklab.models.stacked.encoder import Norm
from masklab.models.stacked.products import affine, affine_gradients, input_gradient

DIRECTIONS, PARTS = ("ahead", "behind"), ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class LstmBlock:
    """x -> LN(x + dropout(BiLSTM(LN(x)))), asked for as `encoder.Block` is."""

    def __init__(self, parameters, name: str, config):
        self.input_norm = Norm(parameters, f"{name}.input_norm", config.eps)
        self.output_norm = Norm(parameters, f"{name}.output_norm", config.eps)
        self.read, self.gradients = (
            [[of(f"{name}.{each}.{part}_l0") for part in PARTS] for each in DIRECTIONS]
            for of in (parameters.__getitem__, parameters.gradient_of)
        )

    def forward(self, x, ragged, keep, relative=None, chosen=None):
        """x [S, P, H] -> the same, or what `chosen` takes of it; keep: an iterator, next that of the LSTM's output."""
        y = self.input_norm.forward(x, counts=ragged.counts)
        gates = [affine(y, of_tokens, bias + more, ragged.counts) for of_tokens, _, bias, more in self.read]
        hidden, before, told = lstm(gates, [of_states for _, of_states, *_ in self.read], ragged)
        residual = x
        if chosen is not None:
            hidden, residual = chosen.take(hidden), chosen.take(x)
        rows, rows_of = (ragged.counts, ragged.rows_of) if chosen is None else (chosen.own, chosen.rows_of)
        self.saved = y, before, told, ragged, chosen
        return self.output_norm.forward(hidden, residual, None, rows_of(next(keep)), rows)

    def forget(self) -> None:
        """Let go of what a gradient would need."""
        self.saved = self.input_norm.saved = self.output_norm.saved = None

    def backward(self, g):
        """Gradient of x, given that of the result."""
        (y, before, told, ragged, chosen), self.saved = self.saved, None  # memory for what comes next
        g, dhidden = self.output_norm.backward(g)
        if chosen is not None:
            g, dhidden = chosen.put(g), chosen.put(dhidden)
        dy, width = None, y.shape[2] // 2
        slopes = lstm_backward(dhidden, told, ragged)
        for number, slope in enumerate(slopes):
            of_tokens, of_states, bias, more = self.gradients[number]
            affine_gradients(slope, y, of_tokens, bias, ragged.counts)
            own = before[:, :, number * width : (number + 1) * width]
            affine_gradients(slope, own, of_states, None, ragged.counts)
            more.copy_(bias)
            dy = input_gradient(slope, self.read[number][0], ragged.counts, dy)
        return self.input_norm.backward(dy)[0].add_(g)
