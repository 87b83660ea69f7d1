"""Maximum, minimum, mean, norm, counts and MD5 of tensors."""
