"""Whether a training learns, from statistics: what gets no gradient, stands still or grows."""
