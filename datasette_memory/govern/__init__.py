"""Whether a memory is whole, and how it is kept so: verify, doctor, backup."""
