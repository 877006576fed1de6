"""Matrix products in tiles: axes, plans, microkernels, epilogues, whole numbers, chains."""
