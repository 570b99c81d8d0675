"""Optimisers, their schedules, and gradients added in place."""
