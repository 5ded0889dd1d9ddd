"""Dispatch: sends pilots to computing elements, with one module a middleware behind one port."""
