"""What every long job shares: state to resume from, progress, status, provenance, the store, the warm start."""
