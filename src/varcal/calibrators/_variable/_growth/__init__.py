"""The second stage of the two-class model: tables of pairs and trees, blended with the first."""
