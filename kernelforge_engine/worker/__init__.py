"""The children that hold torch: capture, Judge and measurement. Nothing imports them."""
