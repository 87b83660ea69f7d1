"""Arrays, dtypes and device layouts of tensors, and fast copies of them."""
