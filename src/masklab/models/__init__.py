"""Encoders and their switches, Hugging Face folders of them, and models without a network."""
