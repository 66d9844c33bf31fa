"""A labelled set for search: 300 written notes of incidents, 1,700 made ones that answer nothing, 200 questions."""
