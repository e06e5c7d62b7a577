"""The parent's side of process isolation: frames, messages, and children that can be killed."""
