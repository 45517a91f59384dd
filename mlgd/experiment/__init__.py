"""What the chapters measure: the paper's least squares, the heat source, the rivals."""
