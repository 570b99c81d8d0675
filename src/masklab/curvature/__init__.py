"""Curvature of the masked-language-model loss at saturation: the trace of its Hessian, and slices of the loss."""
