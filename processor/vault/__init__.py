"""What is kept for ever is kept as ciphertext: sealing, data keys, and who wraps them."""
