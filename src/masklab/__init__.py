"""MaskLab: the workbench for masked-language-model pre-training research.

The library knows nothing of Snakemake and can be used from a notebook. Heavy
imports (torch, matplotlib, spams) happen in the modules that need them.
"""

__version__ = "0.1.0"
