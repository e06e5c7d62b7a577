"""The candidate format: a launch header in the first comment, and the plan it resolves to."""
