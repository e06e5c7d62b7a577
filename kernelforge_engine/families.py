"""Shape families: variants of one operator that differ only in sizes that were seen to vary."""
