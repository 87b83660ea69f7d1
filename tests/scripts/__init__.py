"""Scripts as users of MindSpore write them, one subject each. Each leaves a list `losses` that falls."""
