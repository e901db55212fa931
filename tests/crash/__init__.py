"""Servers that die: what they have acknowledged must be there when they are started again."""
