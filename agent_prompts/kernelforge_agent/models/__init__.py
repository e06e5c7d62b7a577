"""Models: whatever writes the next turn of a conversation."""
