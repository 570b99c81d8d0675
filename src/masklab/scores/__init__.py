"""From rows of measurements to values per replicate."""
