"""Hand-written kernels in the candidate format, offered as starting points for a call."""
