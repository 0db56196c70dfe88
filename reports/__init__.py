"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service."""
