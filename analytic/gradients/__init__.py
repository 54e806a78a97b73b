"""Hand-derived losses and gradients: one compiled file per model, and beside it its readable numpy twin."""
