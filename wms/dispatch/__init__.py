"""Dispatch: how pilots reach computing elements, one module a middleware behind one port."""
