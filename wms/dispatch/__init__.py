"""Dispatch: sends pilots, and whole jobs, to computing elements. Each middleware or batch system has one module behind a common port."""
