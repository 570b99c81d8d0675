"""A model whose methods are compiled when they are first called."""

import torch


class Compiled:
    """`model(...)` and `model.<method>(...)`, each through torch.compile; other attributes are the model's own."""

    def __init__(self, model):
        self._model, self._made = model, {}

    def __call__(self, *arguments, **keys):
        return self._compiled("forward", self._model)(*arguments, **keys)

    def __getattr__(self, name):
        attribute = getattr(self._model, name)
        return self._compiled(name, attribute) if callable(attribute) else attribute

    def _compiled(self, name, function):
        if name not in self._made:
            self._made[name] = torch.compile(function)
        return self._made[name]
